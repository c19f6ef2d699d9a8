"""The dispatcher that hears what the library asks of this program, and has it answered."""

from __future__ import annotations

import _thread
import threading
import weakref
from types import BuiltinFunctionType

from . import _ffi
from ._errors import CodeError, refuse
from ._events import decode_batch
from ._generated import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from ._context import Context, Supplied

# Refusals of an answer that leave its request open.
_REFUSED = (Status.E_INVALID, Status.E_LIMIT)


def _log() -> logging.Logger:
    import logging  # only what goes wrong needs it
    return logging.getLogger("a3s_code")


class Desk:
    """One daemon thread an agent, started at the first registration. It reads the agent's control
    stream and hands each request to a worker thread or a loop; it runs nothing itself."""

    def __init__(self, agent: _ffi.Handle) -> None:
        self.agent = agent
        # By kind, session and name. Weak: a function often closes over its session, and this
        # thread must not keep that alive.
        self._supplied: weakref.WeakValueDictionary[tuple[str, str, str], Supplied] = weakref.WeakValueDictionary()
        self._open: dict[int, Context] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stream = _ffi.NONE
        self._stopping = False

    def start(self) -> None:
        """Starts listening, once. Requests made after it returns are heard.

        Raises:
            CodeError: UNSUPPORTED_OPERATION: gevent or the like has replaced the threads. This one
                would then wait for the library without letting anything else run, for ever.
        """
        if not isinstance(_thread.start_new_thread, BuiltinFunctionType):
            raise refuse(
                "UNSUPPORTED_OPERATION", "host.register", "the threads of this process are replaced, as gevent and eventlet do it, and "
                "parts of a program need real ones: leave threads out, with gevent.monkey.patch_all(thread=False), or use another process")
        with self._lock:
            if self._thread is not None or self._stopping:
                return
            self._stream = _ffi.stream_open(self.agent)
            self._thread = threading.Thread(target=self._listen, name="a3s-desk", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Ends the thread and cancels what is running. Late answers are dropped by the library."""
        with self._lock:
            self._stopping = True
            thread = self._thread
        if thread is None:
            return
        try:
            _ffi.stream_wake(self._stream)
        except CodeError:
            pass  # the agent is closed, which ends the stream as well
        if thread is not threading.current_thread():
            thread.join(timeout)

    def supply(self, owner: _ffi.Handle, scope: str, supplied: Supplied, spec: bytes) -> None:
        """Registers something; requests find it from then on."""
        key = supplied.kind, scope, supplied.name
        free = key not in self._supplied
        if free:  # the first request may come before the library has said yes
            self._supplied[key] = supplied
        try:
            supplied.handle = _ffi.host_register(owner, supplied.kind.encode(), spec)
        except BaseException:
            if free:
                self._supplied.pop(key, None)
            raise
        self._supplied[key] = supplied

    def withdraw(self, scope: str, supplied: Supplied) -> None:
        """Takes something back; what it is serving is cancelled."""
        key = supplied.kind, scope, supplied.name
        if self._supplied.get(key) is supplied:
            self._supplied.pop(key, None)
        _ffi.close_quietly(supplied.handle, 1000)

    # --- hearing ---

    def _listen(self) -> None:
        try:
            reader = _ffi.Reader(self._stream)
            while not self._stopping:
                text = reader.read(1000)
                if text is None:
                    break
                for frame in decode_batch(text):
                    self._hear_safely(frame.type, frame.payload)
        except CodeError as err:
            _log().debug("the control stream ended: %s", err)
        finally:
            _ffi.close_quietly(self._stream)
            for context in list(self._open.values()):
                context._cancel("the agent was closed")

    def _hear_safely(self, type: str, frame: dict[str, Any]) -> None:
        try:
            self._hear(type, frame)
        except Exception as err:  # one bad request must not leave all later ones unheard
            _log().debug("request not served", exc_info=err)
            if type == "host_request":
                self._open.pop(frame["request"], None)
                from ._answers import failure

                self._answer(frame["request"], failure(err))

    def _hear(self, type: str, frame: dict[str, Any]) -> None:
        if type == "host_cancel":
            context = self._open.pop(frame["request"], None)
            if context is not None:
                context._cancel(frame.get("reason") or "cancelled")
        elif type == "host_request":
            self._begin(frame)

    def _find(self, kind: str, session_id: str, name: str) -> Supplied:
        found = self._supplied.get((kind, session_id, name)) or self._supplied.get((kind, "", name))
        if found is None:
            raise LookupError(f"{kind} {name!r} is no longer there")
        return found

    def _begin(self, frame: dict[str, Any]) -> None:
        supplied = self._find(frame["kind"], frame.get("session_id") or "", frame["name"])
        params = frame.get("params") or {}
        handler = supplied.handler(frame["op"], params)
        context = supplied.context(self.agent, frame)
        self._open[context._request] = context
        from ._answers import begin  # needed by programs that supply something only

        begin(self, supplied, context, handler, params)

    # --- answering ---

    def end(self, context: Context, answer: bytes) -> None:
        """Hands in the answer to a request."""
        self._open.pop(context._request, None)
        context._task = None
        if context.remaining() == 0.0:
            # The library's clock decides what becomes of the request, not whose thread is faster.
            _log().debug("%s %s answered after its deadline", context.kind, context.name)
            return
        self._answer(context._request, answer)

    def _answer(self, request: int, answer: bytes) -> None:
        try:
            if not _ffi.host_reply(self.agent, request, answer):
                _log().debug("the answer to request %d came too late", request)
        except CodeError as err:
            _log().debug("the answer to request %d was not taken: %s", request, err)
            if err.status in _REFUSED:  # it must not wait for its deadline
                from ._answers import failure

                self._answer(request, failure(err))
