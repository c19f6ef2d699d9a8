"""JSON on its way in and out of the library: strict, compact, UTF-8."""

from __future__ import annotations

from ._errors import bad_type, bad_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def _plain() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Encoder and decoder of :mod:`json`."""
    import json

    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode, json.loads


def _quick() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """The same from the parts of C that :mod:`json` is made of in CPython. Importing json takes half
    as long as importing this package, because of the regular expressions that it brings along."""
    from _json import encode_basestring, make_encoder, make_scanner

    class Rules:
        strict = True
        memo: dict[str, str] = {}
        object_hook = object_pairs_hook = None
        parse_float, parse_int, parse_constant = float, int, float

    def refuse(value: Any) -> Any:
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")

    rules: Any = Rules
    scan = make_scanner(rules)

    def encode(value: Any) -> str:
        return "".join(make_encoder({}, refuse, encode_basestring, None, ":", ",", False, False, False)(value, 0))

    def decode(text: str) -> Any:
        try:
            value, end = scan(text, 0)
            if end == len(text):
                return value
        except StopIteration:
            pass
        return _plain()[1](text)  # there is white space around it, or json says what is wrong

    if decode(encode({"a": [None, True, 1.5, "\u00e9\n"]})) != {"a": [None, True, 1.5, "\u00e9\n"]}:
        raise ImportError
    return encode, decode


try:
    _encode, decode = _quick()
except (ImportError, TypeError):  # another Python, or another version of those parts
    _encode, decode = _plain()


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
    return _encode(value)


def loads(data: bytes) -> Any:
    """Decodes an answer of the library; nothing is ``None``."""
    return decode(str(data, "utf-8")) if data else None
