"""Tools that this program implements: what they are told, and how they are registered. How the
library's requests reach them is the desk's part."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar, overload

from . import _ffi
from ._errors import bad_type, forked
from ._wire import dumps

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures

    from ._desk import Desk

F = TypeVar("F", bound=Callable[..., Any])

class ToolContext:
    """What a tool may know of the call it serves. A function gets it by asking: a parameter
    of any name with the annotation ``ToolContext``.

    Attributes:
        tool_name: name the tool is registered under.
        call_id: id of the call, as in the events.
        session_id: session the call belongs to.
        deadline: when the answer stops counting, on the clock of ``time.monotonic()``; None for none.
    """

    def __init__(self, owner: int, request: int, tool_name: str, call_id: str, session_id: str, deadline: float | None) -> None:
        self._owner = owner
        self._request = request
        self._cancelled = threading.Event()
        self._reason = ""
        self._task: concurrent.futures.Future[Any] | None = None
        self.tool_name = tool_name
        self.call_id = call_id
        self.session_id = session_id
        self.deadline = deadline

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past the deadline."""
        return self._cancelled.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)

    @property
    def reason(self) -> str:
        """Why the call was cancelled; empty if it was not."""
        return self._reason

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleeps up to ``timeout`` seconds, and less when the call is cancelled; then True."""
        if self.deadline is not None:
            timeout = min(timeout, max(0.0, self.deadline - time.monotonic()))
        self._cancelled.wait(timeout)
        return self.cancelled

    def remaining(self) -> float | None:
        """Seconds until the deadline, not below 0; None if there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    def emit(self, text: str) -> None:
        """Tells a piece of output while the tool runs: a ``tool_output_delta`` event. What comes
        after the call has ended is dropped. Calls a3s_host_chunk."""
        _ffi.host_chunk(self._owner, self._request, dumps({"delta": text}, "host.chunk"))

    def _cancel(self, reason: str) -> None:
        self._reason = reason
        self._cancelled.set()
        task = self._task
        if task is not None:
            task.cancel()


class HostTool:
    """A registered function. It stays registered while its session or agent is open."""

    def __init__(self, fn: Callable[..., Any], name: str, description: str, read_only: bool, timeout_ms: int | None) -> None:
        import inspect

        from ._schema import Signature  # what reads signatures is needed for tools only

        self.fn = fn
        self.name = name
        self.signature = Signature(fn, ToolContext)
        self.description = description or self.signature.description or name
        self.read_only = read_only
        self.timeout_ms = timeout_ms
        self.is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))
        self.loop = _running_loop() if self.is_async else None
        self.handle = 0

    def spec(self) -> dict[str, Any]:
        """The registration as the library reads it."""
        spec: dict[str, Any] = {"name": self.name, "description": self.description, "parameters": self.signature.parameters}
        if self.read_only:
            spec["read_only"] = True
        if self.timeout_ms is not None:
            spec["timeout_ms"] = self.timeout_ms
        return spec

    def call(self, context: ToolContext, args: Mapping[str, Any]) -> Any:
        """Calls the function: its value, or a coroutine for an async one."""
        kwargs = self.signature.arguments(args)
        if self.signature.context is not None:
            kwargs[self.signature.context] = context
        return self.fn(**kwargs)


class ToolOwner:
    """What agents and sessions share: functions of this program as tools of the model."""

    _handle: int
    _desk: Desk
    _tools: dict[str, HostTool]

    def _tool_scope(self) -> str:
        """The session the tools belong to; empty for an agent."""
        raise NotImplementedError

    @overload
    def register_tool(
        self, fn: F, name: str | None = None, description: str | None = None,
        read_only: bool = False, timeout_ms: int | None = None) -> F: ...

    @overload
    def register_tool(
        self, fn: None = None, name: str | None = None, description: str | None = None,
        read_only: bool = False, timeout_ms: int | None = None) -> Callable[[F], F]: ...

    def register_tool(
        self, fn: F | None = None, name: str | None = None, description: str | None = None,
        read_only: bool = False, timeout_ms: int | None = None,
    ) -> F | Callable[[F], F]:
        """Makes a function a tool of the model. Use it as a call or as a decorator::

            @session.register_tool(read_only=True)
            def weather(city: str, days: int = 1) -> str:
                '''Says what the weather will be.

                Args:
                    city: name of the city.
                    days: how many days to look ahead.
                '''

        The name, the words for the model and the schema of the arguments come from the
        function's name, docstring and type hints; ``Annotated[str, "words"]`` works too. A plain
        function runs in a worker thread; an async one runs in the loop that was running when it
        was registered, else in a loop of its own. It may call the session again. What it returns
        becomes text (JSON for anything but ``str``); return a :class:`~a3s_code.ToolResult` for an exit
        code or metadata. An exception is a failed result that the model sees. A parameter
        annotated with :class:`ToolContext` gets the context: cancellation, deadline, progress.

        Every call passes the session's permission policy under the tool's name.

        Args:
            fn: the function; leave it out to decorate.
            name: name for the model; default the function's name.
            description: words for the model; default the docstring's first paragraph.
            read_only: the tool changes nothing anywhere: it may run in parallel, and without a policy.
            timeout_ms: limit of one call in milliseconds; default the session's tool time-out, else 10 minutes.

        Raises:
            TypeError: the signature has no JSON form.
            CodeError: ALREADY_EXISTS for a taken name, SESSION_CLOSED.

        Calls a3s_host_register with kind ``tool``.
        """
        if fn is None:
            def decorate(function: F) -> F:
                return self.register_tool(function, name, description, read_only, timeout_ms)
            return decorate
        if not callable(fn):
            raise bad_type(f"register_tool takes a function, not {type(fn).__name__}", op="host.register")
        if _ffi.dead():
            raise forked("host.register")
        called = name or str(getattr(fn, "__name__", type(fn).__name__))
        tool = HostTool(fn, called, description or "", read_only, timeout_ms)
        self._desk.start()
        tool.handle = _ffi.host_register(self._handle, b"tool", dumps(tool.spec(), "host.register"))
        self._tools[tool.name] = tool
        self._desk.tools[self._tool_scope(), tool.name] = tool
        return fn

    def unregister_tool(self, name: str) -> bool:
        """Withdraws a tool registered here and cancels its open calls; False if there is none."""
        tool = self._tools.pop(name, None)
        if tool is None:
            return False
        self._desk.tools.pop((self._tool_scope(), name), None)
        _ffi.close_quietly(tool.handle, 1000)
        return True


def _running_loop() -> asyncio.AbstractEventLoop | None:
    if "asyncio" not in sys.modules:  # then none can run
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
