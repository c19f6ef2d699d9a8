"""Errors: a class a code, the native type beside it, and what they carry."""

from __future__ import annotations

import pickle

import pytest

import a3s_code
from a3s_code import CodeError
from a3s_code._errors import _CLASSES, error_from
from a3s_code._generated import CODES

# These end in the reader and are never raised.
_INSIDE = {"BUFFER_TOO_SMALL", "STREAM_END", "WOKEN", "INTERNAL_ERROR"}


def test_every_code_has_its_class() -> None:
    assert set(CODES) - set(_CLASSES) == _INSIDE
    assert all(getattr(a3s_code, cls.__name__) is cls for cls in _CLASSES.values())


@pytest.mark.parametrize("code", sorted(_CLASSES))
def test_the_class_follows_the_code(code: str) -> None:
    err = error_from({"code": code, "status": -5, "kind": "busy", "op": "o", "message": "m", "retryable": True, "details": {"a": 1}})
    assert type(err) is _CLASSES[code] and isinstance(err, CodeError) and isinstance(err, RuntimeError)
    assert str(err) == "m"
    assert err.to_dict() == {"code": code, "status": -5, "kind": "busy", "op": "o", "message": "m", "retryable": True, "details": {"a": 1}}


@pytest.mark.parametrize("reason, native, other", [("bad_value", ValueError, TypeError), ("bad_type", TypeError, ValueError)])
def test_the_reason_adds_the_native_type(reason: str, native: type, other: type) -> None:
    err = error_from({"code": "SESSION_CONFIGURATION_ERROR", "message": "m", "details": {"reason": reason}})
    assert isinstance(err, native) and not isinstance(err, other)
    assert isinstance(err, a3s_code.SessionConfigurationError) and err.code == "SESSION_CONFIGURATION_ERROR"


def test_what_is_unknown_is_a_plain_code_error() -> None:
    err = error_from({"code": "FROM_THE_FUTURE", "message": "m", "details": {"reason": ["odd"]}})
    assert type(err) is CodeError and err.code == "FROM_THE_FUTURE"
    assert (error_from({}).code, error_from({"details": 3, "status": "x"}).status) == ("INTERNAL_ERROR", -99)


@pytest.mark.parametrize("details", [{}, {"reason": "bad_value"}])
def test_errors_travel_between_processes(details: dict[str, str]) -> None:
    err = error_from({"code": "SESSION_BUSY", "kind": "busy", "status": -5, "op": "run.start", "message": "m", "details": details})
    twin = pickle.loads(pickle.dumps(err))
    assert (type(twin), twin.to_dict(), str(twin)) == (type(err), err.to_dict(), "m")
