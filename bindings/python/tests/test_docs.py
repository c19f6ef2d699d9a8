"""Everything public says what it is."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any, Iterator

import pytest

import a3s_code
import a3s_code.types

# What a name of a data model means is said by Python.
MADE_BY_PYTHON = {"__init__", "__repr__", "__str__", "__eq__", "__hash__"}


def public() -> Iterator[tuple[str, Any]]:
    """The modules, and every name that programs use, with its members."""
    yield "a3s_code", a3s_code
    for info in pkgutil.iter_modules(a3s_code.__path__):
        yield info.name, importlib.import_module(f"a3s_code.{info.name}")
    for name in a3s_code.__all__:
        value = getattr(a3s_code, name)
        if inspect.isfunction(value):
            yield name, value
        if inspect.isclass(value):
            yield name, value
            yield from members(name, value)


def members(name: str, cls: type) -> Iterator[tuple[str, Any]]:
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] != "a3s_code":
            continue
        for key, member in vars(base).items():
            if key.startswith("_") or not (callable(member) or isinstance(member, (property, classmethod, staticmethod))):
                continue
            yield f"{name}.{key}", member


@pytest.mark.parametrize("name, value", [pytest.param(n, v, id=n) for n, v in {n: v for n, v in public()}.items()])
def test_it_has_words(name: str, value: Any) -> None:
    words = inspect.getdoc(value.__func__ if isinstance(value, (classmethod, staticmethod)) else value) or ""
    assert len(words) > 10, f"{name} has no docstring"
    assert words.strip().endswith((".", "::", ")", "`", '"""')) or "\n" in words, f"{name}: {words!r}"


@pytest.mark.parametrize("name", [n for n in a3s_code.__all__ if not n.startswith("__")])
def test_every_name_can_be_imported_from_the_package(name: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"from a3s_code import {name}", namespace)
    assert namespace[name] is getattr(a3s_code, name)


def test_all_names_are_listed() -> None:
    assert set(a3s_code.__all__) <= set(dir(a3s_code))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Agnet'"):
        a3s_code.Agnet  # type: ignore[attr-defined]  # noqa: B018


def test_the_attributes_of_options_are_described() -> None:
    doc = a3s_code.SessionOptions.__doc__ or ""
    missing = [name for name in a3s_code.SessionOptions.__slots__ if name not in doc]
    assert sorted(missing) == NOT_BUILT


# Named in docs/options.md, and refused when a session is opened.
NOT_BUILT = [
    "auto_delegation", "budget_guard", "memory_store", "queue_config", "remote_git", "security_provider",
    "trajectory_include_messages", "trajectory_max_text_bytes", "trajectory_mode", "trajectory_path",
]
