"""Errors of the library as Python exceptions: one class a code, nothing is guessed from text."""

from __future__ import annotations

from ._generated import CODES, KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Type

    from .types import CodeErrorCode, ErrorCode

__all__ = [
    "AlreadyExists", "BudgetExhausted", "Cancelled", "CodeError", "ConfigError",
    "Conflict", "ContextError", "ExtensionError", "Forked", "Interrupted", "InvalidHandle", "InvalidRequest",
    "LibraryError", "LLMError", "NotFound", "SecurityError", "SessionBusy", "SessionClosed",
    "SessionConfigurationError", "SessionError", "SessionInitializationError", "StorageError",
    "StoredDataError", "TimedOut", "ToolError", "Unsupported",
]


class ExtensionError(Exception):
    """What something of this program raises that can say more of its failure than its words. Any
    other exception is told by the name of its class and its text.

    Args and attributes:
        message: the words.
        kind: nature of the failure: ``"not_found"``, ``"conflict"``, ``"denied"``, ``"invalid"``,
            ``"limit"``, ``"exists"``, ``"unsupported"``, ``"io"`` of a workspace; ``"incomplete"``
            of a model whose answer was cut.
        retryable: the same request may succeed later; ``retry_after_ms`` says when.
        details: machine-readable extras, such as ``expected`` and ``actual`` of a conflict.
    """

    def __init__(
        self, message: str, *, kind: str | None = None, retryable: bool = False,
        retry_after_ms: int | None = None, details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
        self.details = dict(details or {})


class CodeError(RuntimeError):
    """Anything the library refuses or fails at.

    Branch on :attr:`code` or on a subclass, never on the text: the text is for people.

    Attributes:
        code: stable code of the contract, such as ``"CONFIG_ERROR"``.
        kind: nature of the failure, such as ``"invalid"``, ``"busy"`` or ``"provider"``.
        status: number of the C interface, below 0.
        op: operation that failed, such as ``"session.save"``; empty if there is none.
        retryable: the same call may succeed later, unchanged.
        details: machine-readable extras; ``reason``, ``field``, ``line`` and ``column``
            mean the same everywhere.
        message: the text without anything added.
    """

    code: CodeErrorCode
    kind: str
    status: int
    op: str
    retryable: bool
    details: dict[str, Any]
    message: str

    def __init__(
        self,
        message: str,
        *,
        code: CodeErrorCode = "INTERNAL_ERROR",
        kind: str = "internal",
        status: int = -99,
        op: str = "",
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.kind = kind
        self.status = status
        self.op = op
        self.retryable = retryable
        self.details = dict(details or {})

    def to_dict(self) -> dict[str, Any]:
        """The error as the object that every language sees."""
        return {
            "code": self.code, "status": self.status, "kind": self.kind, "op": self.op,
            "message": self.message, "retryable": self.retryable, "details": self.details,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return error_from, (self.to_dict(),)


class ConfigError(CodeError):
    """CONFIG_ERROR: the configuration cannot be read or does not make sense."""


class LLMError(CodeError):
    """LLM_ERROR: the model service failed."""


class ToolError(CodeError):
    """TOOL_ERROR: the tool machinery failed. A tool that fails is a ToolResult instead."""


class SessionError(CodeError):
    """SESSION_ERROR: store, resume or checkpoint failed."""


class SessionConfigurationError(CodeError):
    """SESSION_CONFIGURATION_ERROR: a session option is wrong; ``details["field"]`` names it."""


class SessionInitializationError(CodeError):
    """SESSION_INITIALIZATION_ERROR: a part of the session could not be started."""


class SessionClosed(CodeError):
    """SESSION_CLOSED: the session or its agent is closed."""


class SessionBusy(CodeError):
    """SESSION_BUSY: the session already has an active operation, or another process holds it."""


class BudgetExhausted(CodeError):
    """BUDGET_EXHAUSTED: a budget guard said no."""


class SecurityError(CodeError):
    """SECURITY_ERROR: a boundary was crossed."""


class ContextError(CodeError):
    """CONTEXT_ERROR: the conversation does not fit the model's window."""


class StorageError(CodeError):
    """IO_ERROR: reading or writing failed."""


class StoredDataError(CodeError):
    """SERIALIZATION_ERROR: stored data cannot be decoded."""


class Cancelled(CodeError):
    """CANCELLED: the run or call was cancelled."""


class Interrupted(CodeError):
    """INTERRUPTED: the process running it died; nothing was repeated."""


class TimedOut(CodeError):
    """TIMEOUT: a time limit ran out."""


class Forked(CodeError):
    """FORKED: called in a forked child of the process that loaded the library.

    Use the ``spawn`` start method of :mod:`multiprocessing`, or open agents in the child only.
    """


class InvalidRequest(CodeError):
    """INVALID_REQUEST: a parameter is missing, wrong or unknown."""


class InvalidHandle(CodeError):
    """INVALID_HANDLE: the object behind this handle is gone."""


class NotFound(CodeError):
    """NOT_FOUND: no such thing."""


class AlreadyExists(CodeError):
    """ALREADY_EXISTS: the name is taken."""


class Conflict(CodeError):
    """CONFLICT: it changed since it was read."""


class Unsupported(CodeError):
    """UNSUPPORTED_OPERATION: this build or back-end cannot do it."""


class LibraryError(CodeError):
    """ABI_MISMATCH or LIBRARY_NOT_FOUND: the native library is missing or does not fit."""


_CLASSES: dict[str, Type[CodeError]] = {
    "CONFIG_ERROR": ConfigError,
    "LLM_ERROR": LLMError,
    "TOOL_ERROR": ToolError,
    "SESSION_ERROR": SessionError,
    "SESSION_CONFIGURATION_ERROR": SessionConfigurationError,
    "SESSION_INITIALIZATION_ERROR": SessionInitializationError,
    "SESSION_CLOSED": SessionClosed,
    "SESSION_BUSY": SessionBusy,
    "BUDGET_EXHAUSTED": BudgetExhausted,
    "SECURITY_ERROR": SecurityError,
    "CONTEXT_ERROR": ContextError,
    "IO_ERROR": StorageError,
    "SERIALIZATION_ERROR": StoredDataError,
    "CANCELLED": Cancelled,
    "INTERRUPTED": Interrupted,
    "TIMEOUT": TimedOut,
    "FORKED": Forked,
    "INVALID_REQUEST": InvalidRequest,
    "INVALID_HANDLE": InvalidHandle,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": AlreadyExists,
    "CONFLICT": Conflict,
    "UNSUPPORTED_OPERATION": Unsupported,
    "ABI_MISMATCH": LibraryError,
    "LIBRARY_NOT_FOUND": LibraryError,
}

# details.reason names the native error that a Python programmer expects as well.
_NATIVE: dict[str, Type[Exception]] = {"bad_value": ValueError, "bad_type": TypeError}
_mixed: dict[tuple[Type[CodeError], str], Type[CodeError]] = {}


def _class_for(code: str, reason: object) -> Type[CodeError]:
    base = _CLASSES.get(code, CodeError)
    native = _NATIVE.get(reason) if isinstance(reason, str) else None
    if native is None or not isinstance(reason, str):
        return base
    key = (base, reason)
    if key not in _mixed:
        # The name stays the base's, so that a traceback shows the documented class.
        _mixed[key] = type(base.__name__, (base, native), {"__module__": base.__module__, "__doc__": base.__doc__})
    return _mixed[key]


def error_from(obj: Mapping[str, Any]) -> CodeError:
    """The exception for an error object ``{code, status, kind, op, message, retryable, details}``.

    With ``details["reason"]`` ``"bad_value"`` or ``"bad_type"`` it is a ``ValueError`` or
    ``TypeError`` as well. Unknown codes give a plain :class:`CodeError`.
    """
    details = obj.get("details")
    details = details if isinstance(details, dict) else {}
    code = str(obj.get("code") or "INTERNAL_ERROR")
    cls = _class_for(code, details.get("reason"))
    status = obj.get("status")
    return cls(
        str(obj.get("message") or code),
        code=code,
        kind=str(obj.get("kind") or "internal"),
        status=status if isinstance(status, int) else -99,
        op=str(obj.get("op") or ""),
        retryable=bool(obj.get("retryable")),
        details=details,
    )


def refuse(code: ErrorCode, op: str, message: str, **details: Any) -> CodeError:
    """An error that this package finds itself, in the shape of the library's."""
    kind = CODES[code]
    return error_from({"code": code, "kind": kind, "status": KINDS[kind], "op": op, "message": message, "details": details})


def bad_type(message: str, *, field: str = "", op: str = "session.open") -> CodeError:
    """A refusal that is also a ``TypeError``, for what never reaches the library."""
    return _bad("bad_type", message, field, op)


def bad_value(message: str, *, field: str = "", op: str = "session.open") -> CodeError:
    """A refusal that is also a ``ValueError``, for what never reaches the library."""
    return _bad("bad_value", message, field, op)


def _bad(reason: str, message: str, field: str, op: str) -> CodeError:
    if field:
        return refuse("SESSION_CONFIGURATION_ERROR", op, message, reason=reason, field=field)
    return refuse("INVALID_REQUEST", op, message, reason=reason)


def forked(op: str = "") -> CodeError:
    """The error of any call in a forked child."""
    return refuse(
        "FORKED", op,
        "the library was loaded before this process was forked and does not work in the child: "
        "start workers with multiprocessing.get_context('spawn'), or create agents in the child only")
