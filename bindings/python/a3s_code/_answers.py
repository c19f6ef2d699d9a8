"""How a request is answered: the function is called in a worker thread or a loop, and what it gives
or raises becomes chunks and the reply."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, TypeVar

from ._errors import CodeError, ExtensionError
from ._wire import dumps
from ._workers import private_loop, workers

if TYPE_CHECKING:
    from ._context import Context, Handler, Supplied
    from ._desk import Desk

T = TypeVar("T")
#: The request that is served in a thread or task.
current: ContextVar[Context] = ContextVar("a3s_code.context")


def begin(desk: Desk, supplied: Supplied, context: Context, handler: Handler, params: Any) -> None:
    """Has a request answered, without waiting."""
    if handler.is_async:
        _spawn(desk, supplied, context, handler, lambda: handler.fn(params, context))
    else:
        workers.submit(lambda: _run(desk, supplied, context, handler, params))


def _run(desk: Desk, supplied: Supplied, context: Context, handler: Handler, params: Any) -> None:
    token = current.set(context)
    try:
        value = handler.fn(params, context)
        if _needs_loop(value):
            _spawn(desk, supplied, context, handler, lambda: value)
            return
        answer = dumps({"result": handler.result(_consume(context, handler, value))}, "host.reply")
    except BaseException as err:
        answer = _raised(context, err)
    finally:
        current.reset(token)
    desk.end(context, answer)


def _spawn(desk: Desk, supplied: Supplied, context: Context, handler: Handler, run: Callable[[], Any]) -> None:
    import asyncio

    coroutine = _run_async(desk, context, handler, run)
    loop = supplied.loop if supplied.loop is not None and supplied.loop.is_running() else private_loop()
    try:
        context._task = asyncio.run_coroutine_threadsafe(coroutine, loop)
    except RuntimeError:
        coroutine.close()
        raise
    if context._cancelled.is_set():
        context._cancel(context.reason)


async def _run_async(desk: Desk, context: Context, handler: Handler, run: Callable[[], Any]) -> None:
    current.set(context)  # in the task's own copy
    try:
        value = run()
        if hasattr(value, "__await__"):
            value = await value
        answer = dumps({"result": handler.result(await _consume_async(context, handler, value))}, "host.reply")
    except BaseException as err:
        answer = _raised(context, err)
    desk.end(context, answer)


class _Withdrawn(Exception):
    """Nobody waits for the rest of an answer."""


def _needs_loop(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(hasattr(v, "__aiter__") for v in value)
    return hasattr(value, "__await__") or hasattr(value, "__aiter__")


def _is_iterable(value: Any) -> bool:
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes, bytearray, tuple, Mapping))


def _consume(context: Context, handler: Handler, value: Any) -> Any:
    """What the result is made of; what an iterator gives before is told as chunks."""
    if handler.head is not None:
        first, value = handler.head(value)
        if first is not None and not context.chunk(first):
            raise _Withdrawn
    if handler.gather and _is_iterable(value):
        return list(value)
    if handler.piece is None or not _is_iterable(value):
        return value
    end: Any = None
    try:
        iterator = iter(value)
        while True:
            try:
                item = next(iterator)
            except StopIteration as stop:
                return _joined(end, stop.value)
            piece = handler.piece(item)
            if piece is None:
                end = _joined(end, item)
            elif context.cancelled or not context.chunk(piece):
                context._hear_why()
                raise _Withdrawn
    finally:
        close = getattr(value, "close", None)
        if close is not None:
            close()


async def _consume_async(context: Context, handler: Handler, value: Any) -> Any:
    if handler.head is not None:
        first, value = handler.head(value)
        if first is not None and not await context.chunk_async(first):
            raise _Withdrawn
    if not hasattr(value, "__aiter__"):
        if handler.piece is None or not _is_iterable(value):
            return list(value) if handler.gather and _is_iterable(value) else value
        value = _in_loop(value)
    if handler.piece is None and not handler.gather:
        raise TypeError(f"{context.kind}/{context.op} cannot be answered in pieces")
    gathered: list[Any] = []
    end: Any = None
    try:
        async for item in value:
            piece = handler.piece(item) if handler.piece is not None else None
            if handler.gather:
                gathered.append(item)
            elif piece is None:
                end = _joined(end, item)
            elif context.cancelled or not await context.chunk_async(piece):
                await in_worker(context._hear_why)
                raise _Withdrawn
    finally:
        close = getattr(value, "aclose", None)
        if close is not None:
            await close()
    return gathered if handler.gather else end


async def _in_loop(items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


def _joined(end: Any, more: Any) -> Any:
    if isinstance(end, Mapping) and isinstance(more, Mapping):
        return {**end, **more}
    return end if more is None else more


async def in_worker(fn: Callable[[], T]) -> T:
    """Runs what may wait in a worker thread, because a loop must not."""
    import asyncio
    import concurrent.futures

    told: concurrent.futures.Future[T] = concurrent.futures.Future()

    def tell() -> None:
        if not told.set_running_or_notify_cancel():
            return
        try:
            told.set_result(fn())
        except BaseException as err:
            told.set_exception(err)

    workers.submit(tell)
    return await asyncio.wrap_future(told)


# --- failures ---

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (FileNotFoundError, "not_found"), (FileExistsError, "exists"), (PermissionError, "denied"),
    (NotADirectoryError, "invalid"), (IsADirectoryError, "invalid"), (NotImplementedError, "unsupported"),
)


def _raised(context: Context, err: BaseException) -> bytes:
    import logging

    logging.getLogger("a3s_code").debug("%s %s failed", context.kind, context.name, exc_info=err)
    return failure(err)


def failure(err: BaseException) -> bytes:
    """The reply that says what was raised. It is made of whatever the program raised, and there is
    one in any case: without it the library would wait for the deadline."""
    name = type(err).__name__
    if name == "CancelledError" or isinstance(err, _Withdrawn):
        name = "Cancelled"
    said: dict[str, Any] = {"type": name, "message": _words(err) or name}
    try:
        return dumps({"error": {**said, **_beside(err)}}, "host.reply")
    except Exception:  # what is said beside the words is not worth losing them
        return dumps({"error": said}, "host.reply")


def _words(err: BaseException) -> str:
    try:
        return str(err).encode("utf-8", "replace").decode()
    except BaseException:  # its class has a __str__ that fails
        return ""


def _beside(err: BaseException) -> dict[str, Any]:
    """What a failure says beside its words."""
    kind = next((kind for cls, kind in _KINDS if isinstance(err, cls)), None)
    said: dict[str, Any] = {}
    if isinstance(err, (ExtensionError, CodeError)):
        kind = err.kind
        if err.retryable:
            said["retryable"] = True
        if isinstance(err, ExtensionError) and err.retry_after_ms is not None:
            said["retry_after_ms"] = err.retry_after_ms
        if err.details:
            said["details"] = err.details
    if kind:
        said["kind"] = kind
    return said
