"""JSON on its way in and out of the library: strict, compact, UTF-8."""

from __future__ import annotations

import json

from ._errors import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def dumps(value: Any, op: str) -> bytes:
    """Encodes a request. What JSON cannot say is refused before the library is entered.

    Raises:
        CodeError: INVALID_REQUEST, also a ``TypeError`` (a class JSON does not know) or a
            ``ValueError`` (NaN, infinity, text with lone surrogates, endless nesting).
    """
    try:
        return _encode(value).encode("utf-8")
    except UnicodeEncodeError as err:
        raise bad_value(f"Invalid request: text is not valid Unicode: {err.reason} at character {err.start}", op=op) from None
    except TypeError as err:
        raise bad_type(f"Invalid request: {err}", op=op) from None
    except (ValueError, RecursionError) as err:
        raise bad_value(f"Invalid request: {err}", op=op) from None


def text(value: Any) -> str:
    """Any JSON value as compact text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def loads(data: bytes) -> Any:
    """Decodes an answer of the library; nothing is ``None``."""
    return json.loads(data) if data else None
