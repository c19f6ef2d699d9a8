"""What this program supplies beside tools: how the operations of each kind are answered by an
object or a function. Kinds and operations are those of the library's own table."""

from __future__ import annotations

import base64
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeVar

from ._context import Context, Handler, Supplied
from ._errors import bad_type
from ._live import Live
from ._values import HostSessionStore, HostWorkspaceBackend
from ._workers import is_async

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._owner import ExtensionOwner

Result = dict[str, Any]


# --- what goes in and what comes out ---

def _request(params: Mapping[str, Any]) -> tuple[Any, ...]:
    return (params,)


def _nothing(value: Any) -> Result:
    return {}


def _found(value: Any) -> Result:
    if value is None:
        return {}
    return _object(value)


def _object(value: Any) -> Result:
    if not isinstance(value, Mapping):
        raise TypeError(f"the answer must be an object, not {type(value).__name__}")
    return dict(value)


def _under(key: str, *kinds: type) -> Callable[[Any], Result]:
    """A plain value, or the whole object."""
    def result(value: Any) -> Result:
        if isinstance(value, Mapping):
            return dict(value)
        if not isinstance(value, kinds):
            raise TypeError(f"the answer must be {' or '.join(k.__name__ for k in kinds)}, not {type(value).__name__}")
        return {key: value}
    return result


def _all_under(key: str) -> Callable[[Any], Result]:
    def result(value: Any) -> Result:
        if isinstance(value, Mapping):
            return dict(value)
        if not isinstance(value, (list, tuple, set, frozenset)) and value is not None:
            raise TypeError(f"the answer must be a list, not {type(value).__name__}")
        return {key: list(value or ())}
    return result


def _encoded(data: Any) -> str:
    return base64.b64encode(data).decode("ascii")


def _decoded(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def _is_bytes(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _output(value: Any) -> Result | None:
    """A piece of output, of which nobody but its writer knows whether it is text."""
    if isinstance(value, str):
        return {"text": value}
    return {"data": _encoded(value)} if _is_bytes(value) else None


def _model_result(value: Any) -> Result:
    return {"text": value} if isinstance(value, str) else _found(value)


_MODEL_CHUNK = {"text", "reasoning", "tool_call"}


def _model_piece(value: Any) -> Result | None:
    if isinstance(value, str):
        return {"text": value}
    return dict(value) if isinstance(value, Mapping) and _MODEL_CHUNK.issuperset(value) else None


def _blob(value: Any) -> Result:
    return {} if value is None else {"data": _encoded(value)}


def _file(value: Any) -> Result:
    data, version = value
    return {"data": _encoded(data), "version": version}


def _status(value: Any) -> Result:
    if value is None:
        raise TypeError("the exit code is missing: give it as the last value")
    return _under("exit_code", int)(value)


def _response_head(value: Any) -> tuple[Result | None, Any]:
    """Status and headers go ahead of a body that comes in pieces."""
    status, headers, body = value
    if body is None or isinstance(body, str) or _is_bytes(body):
        return None, value
    return {"status": status, "headers": dict(headers)}, body


def _response(value: Any) -> Result:
    if value is None:  # all was told in pieces
        return {}
    status, headers, body = value
    return {"status": status, "headers": dict(headers), **((_output(body) if body else None) or {})}


def _body(value: Any) -> Result | None:
    piece = _output(value)
    if piece is None:
        raise TypeError(f"a body has pieces of bytes or str, not {type(value).__name__}")
    return piece


# --- the table ---

class Op(NamedTuple):
    """How an operation is answered: a method with the arguments it gets, and what becomes of
    what it gives."""

    method: str
    arguments: Callable[[Mapping[str, Any]], tuple[Any, ...]]
    result: Callable[[Any], Result]
    head: Callable[[Any], tuple[Result | None, Any]] | None = None
    piece: Callable[[Any], Result | None] | None = None
    gather: bool = False


class Kind(NamedTuple):
    """A kind: its operations, the methods an object must have, and the operations that a plain
    function answers."""

    ops: dict[str, Op]
    needs: tuple[str, ...]
    function: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {
    "model": Kind({
        "stream": Op("stream", _request, _model_result, piece=_model_piece),
        "complete": Op("complete", _request, _model_result),
    }, (), ("stream", "complete")),
    "permission": Kind({
        "check": Op("check", _request, _under("decision", str)),
        "expose": Op("expose", _request, _under("visible", bool)),
    }, ("check",), ("check",)),
    "context": Kind({"query": Op("query", _request, _all_under("items"), gather=True)}, ("query",), ("query",)),
    "command": Kind({"run": Op("run", lambda p: (p["args"], p["ctx"]), _under("text", str))}, ("run",), ("run",)),
    "store": Kind({
        "load": Op("load", lambda p: (p["id"], p["from"], p["limit"]), _found),
        "append": Op("append", lambda p: (p["id"], p["generation"], p["from"], p.get("facts") or []), _nothing),
        "save": Op("save", lambda p: (p["id"], p["generation"], p["snapshot"]), _nothing),
        "delete": Op("delete", lambda p: (p["id"],), _nothing),
        "list": Op("list", lambda p: (), _all_under("ids"), gather=True),
        "load blob": Op("load_blob", lambda p: (p["id"], p["blob"]), _blob),
        "append blob": Op("save_blob", lambda p: (p["id"], p["blob"], _decoded(p.get("data"))), _nothing),
        "delete blob": Op("delete_blob", lambda p: (p["id"], p["blob"]), _nothing),
    }, ("load", "append", "save", "delete", "list")),
    "workspace": Kind({
        "stat": Op("stat", lambda p: (p["path"],), _object),
        "list": Op("list", lambda p: (p["path"],), _all_under("entries"), gather=True),
        "read": Op("read", lambda p: (p["path"], p["max"]), _file),
        "write": Op("write", lambda p: (p["path"], _decoded(p["data"]), p.get("if_version"), bool(p.get("if_absent"))), _under("version", str)),
        "remove": Op("remove", lambda p: (p["path"],), _nothing),
        "run": Op("run", lambda p: (p["line"], p.get("timeout_ms"), p.get("env") or {}), _status, piece=_output),
        "search": Op("search", _request, _object),
    }, ("stat", "list", "read", "write", "remove")),
    "log": Kind({"write": Op("write", _request, _nothing)}, ("write",), ("write",)),
    "transport": Kind({
        "round_trip": Op("round_trip", lambda p: (p["method"], p["url"], p["headers"], _decoded(p.get("body"))), _response, _response_head, _body),
    }, ("round_trip",), ("round_trip",)),
}


def _handlers(kind: str, served: Any) -> dict[str, Handler]:
    """What answers each operation, from an object or a function.

    Raises:
        TypeError: the object lacks a method.
    """
    table = KINDS[kind]
    if isinstance(served, type):
        raise bad_type(f"a {kind} is an object, not a class: register an instance of {served.__name__}", op="host.register")
    found: dict[str, Callable[..., Any]] = {}
    for op, how in table.ops.items():
        method = getattr(served, how.method, None)
        if callable(method):
            found[op] = method
    if not found and callable(served):
        found = {op: served for op in table.function}
    missing = [n for n in table.needs if n not in found]
    if missing or not found:
        what = "a function or an object" if table.function else "an object"
        words = ", ".join(missing) or " or ".join(how.method for how in table.ops.values())
        raise bad_type(f"a {kind} is {what} with the methods of {kind}; {type(served).__name__} lacks {words}", op="host.register")
    return {op: _handler(table.ops[op], method) for op, method in found.items()}


def _handler(how: Op, method: Callable[..., Any]) -> Handler:
    return Handler(
        lambda params, context: method(*how.arguments(params)), is_async(method), how.result, how.head, how.piece, how.gather)


class _Store(Supplied):
    """A store, which is asked for blobs by the operations that it is asked for sessions by."""

    def handler(self, op: str, params: Any) -> Handler:
        return super().handler(f"{op} blob" if params.get("blob") else op, params)


class Registration(Live):
    """Something that is registered. Close it, or use it as a context manager, to take it back;
    otherwise it stays while its session or agent is open, also when nobody holds this object.

    Attributes:
        kind: what it is, such as ``"model"``.
        name: name it is registered under.
    """

    def __init__(self, owner: ExtensionOwner, kind: str, name: str) -> None:
        self._owner = weakref.ref(owner)
        self.kind = kind
        self.name = name
        self._closed = False

    def close(self) -> None:
        """Takes it back and cancels what it is serving. May be called twice."""
        owner = self._owner()
        if not self._closed and owner is not None:
            owner._withdraw(self.kind, self.name)
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.kind} {self.name!r}{' closed' if self._closed else ''}>"


class StoreRegistration(Registration, HostSessionStore):
    """A session store that is registered: a value for ``SessionOptions.session_store``."""


class WorkspaceRegistration(Registration, HostWorkspaceBackend):
    """A workspace that is registered: a value for ``SessionOptions.workspace_backend``."""


R = TypeVar("R", bound=Registration)


def register(owner: ExtensionOwner, made: type[R], kind: str, name: str, served: Any, **spec: Any) -> R:
    """Registers an object; what a kind leaves open is read off what the object can do.

    Raises:
        TypeError: the object lacks a method.
        CodeError: the library refuses it.
    """
    handlers = _handlers(kind, served)
    for key, op, wanted, value in _READ_OFF.get(kind, ()):
        if spec.get(key) is None and (op in handlers) == wanted:
            spec[key] = value
    if not isinstance(name, str):
        raise bad_type(f"the name of a {kind} is a str, not {type(name).__name__}", op="host.register")
    supplied = (_Store if kind == "store" else Supplied)(kind, name, handlers)
    owner._supply(supplied, {"name": name, **{k: v for k, v in spec.items() if v is not None}})
    return made(owner, kind, name)


def register_raw(
    owner: ExtensionOwner, kind: str, spec: Mapping[str, Any], functions: Mapping[str, Callable[[Any, Context], Any]],
) -> Registration:
    """Registers functions that speak the JSON of the operations, for any kind."""
    if not isinstance(kind, str):
        raise bad_type(f"kind is a str, not {type(kind).__name__}", op="host.register")
    if not isinstance(spec, Mapping):
        raise bad_type(f"spec is a mapping, not {type(spec).__name__}", op="host.register")
    if not isinstance(functions, Mapping):
        raise bad_type(f"handlers map operations to functions; {type(functions).__name__} is no mapping", op="host.register")
    for op, fn in functions.items():
        if not isinstance(op, str) or not callable(fn):
            raise bad_type(f"handlers map operations to functions; {op!r}: {type(fn).__name__} is none", op="host.register")
    name = spec.get("name")
    if not isinstance(name, str):
        raise bad_type(f"spec names the {kind}: \"name\" is a str, not {type(name).__name__}", op="host.register")
    handlers = {op: Handler(fn, is_async(fn), _as_it_is) for op, fn in functions.items()}
    owner._supply(Supplied(kind, name, handlers), spec)
    return _MADE.get(kind, Registration)(owner, kind, name)


def _as_it_is(value: Any) -> Any:
    return value


# What registering gives where it is more than something to take back.
_MADE: dict[str, type[Registration]] = {"store": StoreRegistration, "workspace": WorkspaceRegistration}

# Parts of a description, by kind: the key, the operation that decides, whether it must be there,
# and the value.
_READ_OFF: dict[str, tuple[tuple[str, str, bool, bool], ...]] = {
    "model": (("stream", "stream", False, False),),
    "permission": (("check_only", "expose", False, True),),
    "store": (("blobs", "load blob", True, True),),
    "workspace": (("run", "run", True, True), ("search", "search", True, True)),
}
