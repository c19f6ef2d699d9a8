"""The only file that touches ctypes: finds and loads the library, and turns its C functions
into Python ones. Bytes in, bytes out; a failing status becomes a :class:`CodeError`.

Blocking functions go through ``CDLL``, which releases the GIL; those that never block go
through ``PyDLL``, which is a third faster.
"""

from __future__ import annotations

import ctypes
import os
import threading
from _thread import _local
from ctypes import (
    POINTER, byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p,
)

from . import _find
from ._errors import CodeError, error_from, forked
from ._generated import ABI_VERSION, FUNCTIONS, Status
from ._wire import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

# Names of the module: looking them up is what the hot path does.
OK, E_TIMEOUT, E_BUFFER, E_END = Status.OK, Status.E_TIMEOUT, Status.E_BUFFER, Status.E_END
E_WOKEN, E_NOTFOUND = Status.E_WOKEN, Status.E_NOTFOUND


# A handle stays the object that ctypes made: it is handed on faster than a number.
Handle = c_uint64
NONE = Handle()


class _Buf(ctypes.Structure):
    _fields_ = [("ptr", c_void_p), ("len", c_size_t)]


# Every C type of the header as ctypes sees it.
_TYPES: dict[str, Any] = {
    "void": None,
    "int32_t": c_int32,
    "uint32_t": c_uint32,
    "int64_t": c_int64,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "uintptr_t": c_size_t,
    "a3s_status": c_int32,
    "a3s_handle": c_uint64,
    "const char *": c_char_p,
    "char *": c_void_p,
    "size_t *": POINTER(c_size_t),
    "uint64_t *": POINTER(c_uint64),
    "a3s_handle *": POINTER(c_uint64),
    "a3s_buf *": POINTER(_Buf),
    "a3s_event_fn": c_void_p,
    "a3s_free_fn": c_void_p,
}


class _Library:
    """The loaded library: one attribute a C function, and ``next_now`` for reads that never wait."""

    def __init__(self, path: str) -> None:
        self.path = path
        blocking, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        for name, result, params, blocks in FUNCTIONS:
            setattr(self, name[4:], _function(blocking if blocks else quick, name, result, params))
            if name == "a3s_stream_next":
                self.next_now = _function(quick, name, result, params)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _function(lib: Any, name: str, result: str, params: tuple[str, ...]) -> Any:
    try:
        fn = lib[name]
    except AttributeError:
        raise _find.missing(f"{lib._name} has no function {name}: it is not {_find.SONAME}, or it is older than this package") from None
    fn.restype = _TYPES[result]
    fn.argtypes = tuple(_TYPES[t] for t in params)
    return fn


# --- finding and loading -------------------------------------------------------------

_lock = threading.Lock()
_lib: _Library | None = None
_dead = False
exiting = False
"""Whether the interpreter is going: streams that end by that end without a word."""


def _open() -> _Library:
    _find.check_python(_interpreter())
    path = _find.library_path()
    try:
        lib = _Library(os.path.realpath(path))
    except OSError as err:
        raise _find.missing(f"{path} cannot be loaded: {err}") from None
    status = lib.abi_check(ABI_VERSION)
    if status < 0:
        raise _last_error(lib, status)
    return lib


def _interpreter() -> int:
    """The number of this interpreter in its process; the main one is 0."""
    state, number = ctypes.pythonapi["PyInterpreterState_Get"], ctypes.pythonapi["PyInterpreterState_GetID"]
    state.restype, number.restype, number.argtypes = c_void_p, c_int64, [c_void_p]
    return int(number(state()))


def library() -> _Library:
    """The library, loaded at the first call; CodeError FORKED in a forked child.

    It is not loaded at import: a server that forks its workers after importing this
    package loads it in each worker.
    """
    global _lib
    if _dead:
        raise forked("library.load")
    if _lib is None:
        with _lock:
            if _lib is None:
                _lib = _open()
    return _lib


def loaded() -> bool:
    """Whether the library lives in this process."""
    return _lib is not None and not _dead


def dead() -> bool:
    """Whether this process is a forked child of one that loaded the library."""
    return _dead


def unless_forked(close: Callable[[], object]) -> None:
    """Leaves a ``with`` block: in a forked child there is nothing to close, and what the child
    itself raised must not be hidden."""
    if not dead():
        close()


def _after_fork_in_child() -> None:
    global _dead, _lock
    _lock = threading.Lock()
    _dead = _lib is not None


os.register_at_fork(after_in_child=_after_fork_in_child)


# --- errors and buffers --------------------------------------------------------------


def _take(lib: _Library, buf: _Buf) -> bytes:
    """Copies a text of the library and frees it."""
    if not buf.ptr:
        return b""
    try:
        return ctypes.string_at(buf.ptr, buf.len)
    finally:
        lib.buf_free(byref(buf))


# The thread's error before a finalizer's call failed, and the one that it left.
_overwritten = _local()


def _slot(lib: _Library) -> bytes:
    """What the library keeps as this thread's last error."""
    buf = _Buf()
    lib.last_error(byref(buf))
    return _take(lib, buf)


def _error_text(lib: _Library) -> bytes:
    """The last error of this thread's calls, but for those of finalizers: they run at any
    instant, also between a call that failed and the look at its error."""
    text = _slot(lib)
    before, left = getattr(_overwritten, "texts", (b"", None))
    return before if text == left else text


def _last_error(lib: _Library, status: int) -> CodeError:
    try:
        obj = loads(_error_text(lib))
    except ValueError:
        obj = {}
    if not isinstance(obj, dict) or not obj:
        name = lib.status_name(status).decode()
        obj = {"code": "INTERNAL_ERROR", "status": status, "message": f"the library returned {name} without an error text"}
    return error_from(obj)


def _check(lib: _Library, status: int) -> int:
    if status < 0:
        raise _last_error(lib, status)
    return status


# --- the functions -------------------------------------------------------------------


def build_info() -> dict[str, Any]:
    """What a3s_build_info says of the loaded library."""
    info: dict[str, Any] = loads(library().build_info())
    return info


def stats(handle: Handle = NONE) -> dict[str, Any]:
    """What a3s_stats counts: live handles by kind, calls, callbacks and closings."""
    lib, buf = library(), _Buf()
    _check(lib, lib.stats(handle, byref(buf)))
    counts: dict[str, Any] = loads(_take(lib, buf))
    return counts


def agent_open(request: bytes) -> Handle:
    """Opens an agent; blocks."""
    lib, out = library(), Handle()
    _check(lib, lib.agent_open(request, len(request), byref(out)))
    return out


def session_open(agent: Handle, request: bytes) -> Handle:
    """Opens or resumes a session; blocks."""
    lib, out = library(), Handle()
    _check(lib, lib.session_open(agent, request, len(request), byref(out)))
    return out


def close(handle: Handle, timeout_ms: int) -> None:
    """Ends a handle and all below it; blocks up to the time-out."""
    lib = library()
    _check(lib, lib.close(handle, timeout_ms))


def close_quietly(handle: Handle, timeout_ms: int = 0) -> None:
    """Ends a handle whose failure to end interests nobody: finalizers, and streams that have ended."""
    if _lib is None or _dead:
        return
    before = _error_text(_lib)
    if _lib.close(handle, timeout_ms) < 0:
        _overwritten.texts = before, _slot(_lib)


def call(handle: Handle, method: bytes, params: bytes) -> bytes:
    """Runs a short operation and waits for it."""
    lib, buf = library(), _Buf()
    _check(lib, lib.call(handle, method, params, len(params), 0, byref(buf)))
    return _take(lib, buf)


def call_start(handle: Handle, method: bytes, params: bytes) -> int:
    """Starts an operation and gives its number."""
    lib, out = library(), c_uint64()
    _check(lib, lib.call_start(handle, method, params, len(params), byref(out)))
    return out.value


def call_wait(handle: Handle, number: int, timeout_ms: int) -> bytes | None:
    """Takes the result of a started operation; None if it still runs."""
    lib, buf = library(), _Buf()
    status = lib.call_wait(handle, number, timeout_ms, byref(buf))
    if status == OK:
        return _take(lib, buf)
    err = _last_error(lib, status)
    # A wait that ran out carries the wait's name, an operation that ran out its own.
    if status == E_TIMEOUT and err.op == "a3s_call_wait":
        return None
    raise err


def call_cancel(handle: Handle, number: int) -> None:
    """Asks a started operation to stop."""
    lib = library()
    status = lib.call_cancel(handle, number)
    if status != E_NOTFOUND:
        _check(lib, status)


def run_start(session: Handle, request: bytes) -> Handle:
    """Takes the lease and starts a run."""
    lib, out = library(), Handle()
    _check(lib, lib.run_start(session, request, len(request), byref(out)))
    return out


def run_cancel(run: Handle, reason: bytes = b"") -> None:
    """Asks a run to stop."""
    lib = library()
    _check(lib, lib.run_cancel(run, reason, len(reason)))


def stream_open(source: Handle, options: bytes = b"") -> Handle:
    """Opens a stream over the events of a run, a session or an agent."""
    lib, out = library(), Handle()
    _check(lib, lib.stream_open(source, options, len(options), byref(out)))
    return out


def stream_fd(stream: Handle) -> int:
    """The descriptor that is readable while something is pending."""
    lib = library()
    fd: int = lib.stream_fd(stream)
    return _check(lib, fd)


def stream_wake(stream: Handle) -> None:
    """Lets a blocked read return."""
    lib = library()
    _check(lib, lib.stream_wake(stream))


def host_register(owner: Handle, kind: bytes, spec: bytes) -> Handle:
    """Registers something that this program implements."""
    lib, out = library(), Handle()
    _check(lib, lib.host_register(owner, kind, spec, len(spec), byref(out)))
    return out


def host_reply(owner: Handle, request: int, answer: bytes) -> bool:
    """Answers a host request; False if it was withdrawn or answered before."""
    lib = library()
    status = lib.host_reply(owner, request, answer, len(answer))
    return status != E_NOTFOUND and _check(lib, status) >= 0


def host_chunk(owner: Handle, request: int, piece: bytes) -> bool:
    """Hands in a piece of an answer; False if the request is no longer open."""
    lib = library()
    status = lib.host_chunk(owner, request, piece, len(piece))
    return status != E_NOTFOUND and _check(lib, status) >= 0


class Reader:
    """Reads a stream in batches into one buffer that is used again and grows when an event needs it.

    One thread at a time. ``cap`` is where the buffer starts, in bytes; ``max_events`` bounds a batch.
    """

    __slots__ = ("stream", "_lib", "_now", "_wait", "_max", "_buf", "_addr", "_cap", "_size", "_view", "_needed", "_needed_ref")

    def __init__(self, stream: Handle, max_events: int = 256, cap: int = 128 << 10) -> None:
        self.stream = stream
        self._lib = library()
        self._now: Callable[..., int] = self._lib.next_now
        self._wait: Callable[..., int] = self._lib.stream_next
        self._max = c_uint32(max_events)
        self._needed = c_size_t()
        self._needed_ref = byref(self._needed)
        self._grow(cap)

    def _grow(self, cap: int) -> None:
        self._cap, self._size = cap, c_size_t(cap)
        self._buf = ctypes.create_string_buffer(cap)
        self._addr = c_void_p(ctypes.addressof(self._buf))
        self._view = memoryview(self._buf)

    def read(self, timeout_ms: int = 0) -> str | None:
        """The text of one JSON array; an empty text if nothing came in time or a wake was asked
        for; None at the end of the stream. With 0 the call keeps the GIL and returns at once."""
        if _dead:
            raise forked("stream.next")
        read = self._wait if timeout_ms else self._now
        while True:
            n = read(self.stream, timeout_ms, self._max, self._addr, self._size, self._needed_ref)
            if n > 0:
                return str(self._view[:n], "utf-8")
            if n == 0 or n == E_WOKEN:
                return ""
            if n == E_END:
                return None
            if n != E_BUFFER or self._needed.value <= self._cap:
                raise _last_error(self._lib, n)
            self._grow(1 << (self._needed.value - 1).bit_length())
