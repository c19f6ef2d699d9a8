"""Functions of this program as tools of the model."""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping

from ._context import Context, Handler, Supplied, ToolContext
from ._schema import Signature
from ._workers import is_async


def tool(
    fn: Callable[..., Any], name: str, description: str, read_only: bool, timeout_ms: int | None,
) -> tuple[Supplied, dict[str, Any]]:
    """A function as a tool, and its description as the library reads it.

    Raises:
        TypeError: the signature has no JSON form.
    """
    signature = Signature(fn, ToolContext)

    def call(params: Mapping[str, Any], context: Context) -> Any:
        kwargs = signature.arguments(params.get("args") or {})
        if signature.context is not None:
            kwargs[signature.context] = context
        return fn(**kwargs)

    spec: dict[str, Any] = {"name": name, "description": description or signature.description or name, "parameters": signature.parameters}
    if read_only:
        spec["read_only"] = True
    if timeout_ms is not None:
        spec["timeout_ms"] = timeout_ms
    return Supplied("tool", name, {"call": Handler(call, is_async(fn), _result)}, ToolContext), spec


def _result(value: Any) -> dict[str, Any]:
    from ._results import ToolResult

    if not isinstance(value, ToolResult):
        return {"output": _output(value), "exit_code": 0}
    result: dict[str, Any] = {"output": value.output, "exit_code": value.exit_code}
    if value.metadata is not None:
        result["metadata"] = value.metadata
    if value.error_kind is not None:
        result["error_kind"] = value.error_kind
    return result


def _output(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    import dataclasses
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if callable(getattr(value, "model_dump", None)):  # a model of pydantic
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if hasattr(value, "__next__") or hasattr(value, "__aiter__") or hasattr(value, "__await__"):
        raise TypeError(f"a tool gives text or a JSON value, not a {type(value).__name__}; ToolContext.emit tells pieces")
    return str(value)
