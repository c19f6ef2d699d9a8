"""What this program supplies, and what its functions may know of the requests they serve. How the
library's requests reach them is the desk's part."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping

from . import _ffi
from ._live import Live
from ._wire import dumps
from ._workers import running_loop

if TYPE_CHECKING:
    import concurrent.futures


class Context(Live):
    """What a function that this program supplies may know of the request it serves. Inside of
    it, and of everything it calls, ``Context.current()`` gives it.

    Attributes:
        kind: what is served, such as ``"model"`` or ``"tool"``.
        op: the operation, such as ``"stream"``.
        name: name that was registered.
        session_id: session the request belongs to; empty for none.
        deadline: when the answer stops counting, on the clock of ``time.monotonic()``; None for none.
    """

    def __init__(self, owner: _ffi.Handle, frame: Mapping[str, Any]) -> None:
        self._owner = owner
        self._request: int = frame["request"]
        self._cancelled = threading.Event()
        self._reason = ""
        self._task: concurrent.futures.Future[Any] | None = None
        self.kind: str = frame["kind"]
        self.op: str = frame["op"]
        self.name: str = frame["name"]
        self.session_id: str = frame.get("session_id") or ""
        limit = frame.get("deadline_ms") or 0
        self.deadline: float | None = time.monotonic() + limit / 1000 if limit > 0 else None

    @staticmethod
    def current() -> Context:
        """The context of the request that is served here.

        Raises:
            LookupError: this is no function that serves one.
        """
        from ._answers import current

        return current.get()

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past the deadline."""
        return self._cancelled.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)

    @property
    def reason(self) -> str:
        """Why the request was cancelled; empty if it was not."""
        return self._reason

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleeps up to ``timeout`` seconds, and less when the request is cancelled; then True."""
        if self.deadline is not None:
            timeout = min(timeout, max(0.0, self.deadline - time.monotonic()))
        self._cancelled.wait(timeout)
        return self.cancelled

    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def chunk(self, piece: Any) -> bool:
        """Hands in a piece of the answer, the JSON that the operation's chunks have. Waits while
        the library is many pieces behind.

        Args:
            piece: any JSON value.

        Returns:
            False if nobody waits for it any more.

        Raises:
            CodeError: INVALID_REQUEST for what JSON cannot say.

        Calls a3s_host_chunk.
        """
        return _ffi.host_chunk(self._owner, self._request, dumps(piece, "host.chunk"))

    async def chunk_async(self, piece: Any) -> bool:
        """:meth:`chunk` for asyncio: it waits in a worker thread, because the loop must not."""
        from ._answers import in_worker

        return await in_worker(lambda: self.chunk(piece))

    def _hear_why(self) -> None:
        """Waits for the word on why nobody waits any more, which is on its way: a generator that is
        closed then finds it."""
        self._cancelled.wait(1)

    def _cancel(self, reason: str) -> None:
        self._reason = reason
        self._cancelled.set()
        task = self._task
        if task is not None:
            task.cancel()


class ToolContext(Context):
    """What a tool may know of the call it serves. A function gets it by asking: a parameter
    of any name with the annotation ``ToolContext``.

    Attributes:
        tool_name: name the tool is registered under.
        call_id: id of the call, as in the events.
    """

    def __init__(self, owner: _ffi.Handle, frame: Mapping[str, Any]) -> None:
        super().__init__(owner, frame)
        self.tool_name = self.name
        self.call_id: str = (frame.get("params") or {}).get("call_id") or ""

    def emit(self, text: str) -> None:
        """Tells a piece of output while the tool runs: a ``tool_output_delta`` event. What comes
        after the call has ended is dropped. Calls a3s_host_chunk."""
        self.chunk({"delta": text})


class Handler:
    """How one operation is answered.

    Attributes:
        fn: gets the parameters and the context.
        is_async: whether a loop must run it.
        result: gives the result of the operation from what the function gave.
        head: gives what is told at once of what the function gave, or None, and what follows.
        piece: gives a chunk from what an iterator gave; None if that belongs to the result.
        gather: whether an iterator is a list that is not complete yet.
    """

    __slots__ = ("fn", "is_async", "result", "head", "piece", "gather")

    def __init__(
        self, fn: Callable[[Any, Any], Any], is_async: bool, result: Callable[[Any], Any],
        head: Callable[[Any], tuple[dict[str, Any] | None, Any]] | None = None,
        piece: Callable[[Any], dict[str, Any] | None] | None = None, gather: bool = False,
    ) -> None:
        self.fn = fn
        self.is_async = is_async
        self.result = result
        self.head = head
        self.piece = piece
        self.gather = gather


class Supplied:
    """Something of this program that the library asks: a kind, a name, and a handler for each
    operation. It stays registered while its session or agent is open."""

    def __init__(self, kind: str, name: str, handlers: Mapping[str, Handler], context: type[Context] = Context) -> None:
        self.kind = kind
        self.name = name
        self.handlers = handlers
        self.context = context
        self.loop = running_loop()
        self.handle = _ffi.NONE

    def handler(self, op: str, params: Any) -> Handler:
        """What answers a request.

        Raises:
            NotImplementedError: nothing does; the library is told so.
        """
        found = self.handlers.get(op)
        if found is None:
            raise NotImplementedError(f"{self.kind} {self.name!r} does not answer {op!r}")
        return found
