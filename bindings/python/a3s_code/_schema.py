"""From the signature of a function to the JSON schema of a tool, and from JSON arguments back.

The schema is what the model sees and what the library checks arguments against; converting
back turns objects into the dataclasses and enums that the function asked for.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
import re
import types
import typing
from typing import Any, Callable, Literal, Mapping, Union, get_args, get_origin, get_type_hints

_SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_MAPPINGS = (dict, Mapping)
# Marks of TypedDict keys; Python 3.10 does not have them.
_KEYS = tuple(getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name))


class Signature:
    """What a function takes.

    Attributes:
        description: first paragraph of the docstring.
        parameters: JSON schema of an object.
        context: name of the parameter that wants the context, or None.

    Raises:
        TypeError: the function has ``*args``, ``**kwargs``, a positional-only parameter, or a
            type hint that JSON cannot carry.
    """

    def __init__(self, fn: Callable[..., Any], context: type) -> None:
        doc = inspect.getdoc(fn) or ""
        self.description = doc.split("\n\n")[0].replace("\n", " ").strip()
        self.context: str | None = None
        self._hints: dict[str, Any] = {}
        told = _parameter_docs(doc)
        hints = _hints(fn)
        properties: dict[str, Any] = {}
        required: list[str] = []
        for p in inspect.signature(fn).parameters.values():
            hint = hints.get(p.name, Any)
            if context in (_bare(hint), *get_args(hint)):
                self.context = p.name
                continue
            if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                raise TypeError(f"parameter {p.name!r} of {_name(fn)} must be a plain named one: a model names its arguments")
            try:
                schema = schema_of(hint)
            except TypeError as err:
                raise TypeError(f"parameter {p.name!r} of {_name(fn)}: {err}") from None
            if p.name in told and "description" not in schema:
                schema = {**schema, "description": told[p.name]}
            if p.default is p.empty:
                required.append(p.name)
            elif _is_json(p.default):
                schema = {**schema, "default": p.default}
            properties[p.name] = schema
            self._hints[p.name] = hint
        shared: dict[str, Any] = {}
        properties = {name: _lifted(schema, shared) for name, schema in properties.items()}
        self.parameters: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if shared:
            self.parameters["$defs"] = shared
        if required:
            self.parameters["required"] = required

    def arguments(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function; unknown names are refused with a TypeError."""
        unknown = sorted(set(args) - set(self._hints))
        if unknown:
            raise TypeError(f"unknown argument {unknown[0]!r}; known are {sorted(self._hints)}")
        return {name: convert(value, self._hints[name]) for name, value in args.items()}


def schema_of(hint: Any) -> dict[str, Any]:
    """The JSON schema of a type hint.

    Knows str, int, float, bool, None, Any, list, tuple, set, dict, Optional, Union, Literal,
    Enum, dataclasses, TypedDict, models of pydantic, and ``Annotated[T, "words for the model"]``.

    Raises:
        TypeError: JSON cannot carry the type.
    """
    return _schema(hint, ())


def _schema(hint: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    if hint in (Any, inspect.Parameter.empty, object):
        return {}
    if isinstance(hint, type) and hint in _SIMPLE or hint is None:
        return {"type": _SIMPLE[hint or type(None)]}
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        words = next((a for a in args[1:] if isinstance(a, str)), None)
        schema = _schema(args[0], above)
        return {**schema, "description": words} if words else schema
    if origin in (Union, types.UnionType):
        return _union(args, above)
    if origin is Literal:
        return {"enum": list(args)}
    if origin is not None and origin in _KEYS:
        return _schema(args[0], above)
    base = origin or hint
    if not isinstance(base, type):
        raise TypeError(f"{hint!r} has no JSON form")
    if issubclass(base, enum.Enum):
        return {"enum": [member.value for member in base]}
    if _is_model(base):
        return dict(getattr(base, "model_json_schema")())
    if typing.is_typeddict(base) or dataclasses.is_dataclass(base):
        if base in above:
            raise TypeError(f"{base.__name__} contains itself, which is not supported")
        return _record(base, (*above, base))
    if issubclass(base, _MAPPINGS):
        if args and args[0] not in (str, Any):
            raise TypeError(f"{hint!r}: JSON objects have text as keys")
        values = _schema(args[1], above) if len(args) == 2 else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    if base is tuple and args and args[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [_schema(a, above) for a in args], "minItems": len(args), "maxItems": len(args)}
    if _is_named_tuple(base):
        return _named_tuple(base, above)
    if issubclass(base, (list, tuple, set, frozenset)) or base in _SEQUENCES:
        items = _schema(args[0], above) if args else {}
        unique = {"uniqueItems": True} if issubclass(base, (set, frozenset)) else {}
        return {"type": "array", **({"items": items} if items else {}), **unique}
    raise TypeError(f"{getattr(hint, '__name__', hint)} has no JSON form")


_SEQUENCES = (typing.get_origin(typing.Sequence[int]), typing.get_origin(typing.Iterable[int]))


def _is_model(base: Any) -> bool:
    """Whether a class makes its own schema and checks values itself, as models of pydantic do."""
    return isinstance(base, type) and callable(getattr(base, "model_json_schema", None)) and callable(getattr(base, "model_validate", None))


def _is_named_tuple(base: Any) -> bool:
    return issubclass(base, tuple) and hasattr(base, "_fields")


def _named_tuple(base: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    hints, names = _hints(base), base._fields
    items = [_schema(hints.get(name, Any), above) for name in names]
    return {"type": "array", "prefixItems": items, "minItems": len(names) - len(base._field_defaults), "maxItems": len(names)}


def _lifted(schema: Any, shared: dict[str, Any]) -> Any:
    """A schema without the ``$defs`` within it, which go to the root, where its references look."""
    if isinstance(schema, list):
        return [_lifted(s, shared) for s in schema]
    if not isinstance(schema, dict):
        return schema
    for name, definition in schema.get("$defs", {}).items():
        lifted = _lifted(definition, shared)
        if shared.setdefault(name, lifted) != lifted:
            raise TypeError(f"two models have the name {name}")
    return {key: _lifted(value, shared) for key, value in schema.items() if key != "$defs"}


def _union(members: tuple[Any, ...], above: tuple[Any, ...]) -> dict[str, Any]:
    schemas = [_schema(m, above) for m in members]
    if all(set(s) == {"type"} and isinstance(s["type"], str) for s in schemas):
        return {"type": [s["type"] for s in schemas]}
    return {"anyOf": schemas}


def _record(base: Any, above: tuple[Any, ...]) -> dict[str, Any]:
    hints = _hints(base)
    properties = {}
    for name, hint in hints.items():
        properties[name] = _schema(hint, above)
    if dataclasses.is_dataclass(base):
        fields = [f for f in dataclasses.fields(base) if f.init]
        required = [f.name for f in fields if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
        properties = {f.name: {**properties[f.name], **({"default": f.default} if _is_json(f.default) else {})} for f in fields}
    else:
        required = [name for name in hints if name in base.__required_keys__]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def convert(value: Any, hint: Any) -> Any:
    """A JSON value as the type the hint asks for; a value that does not fit stays as it is."""
    hint = _bare(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, args)
    base = origin or hint
    if not isinstance(base, type):
        return value
    if issubclass(base, enum.Enum):
        return base(value)
    if _is_model(base):
        return getattr(base, "model_validate")(value)
    if dataclasses.is_dataclass(base) and isinstance(value, Mapping):
        hints = _hints(base)
        return base(**{k: convert(v, hints.get(k, Any)) for k, v in value.items()})
    if typing.is_typeddict(base) and isinstance(value, Mapping):
        hints = _hints(base)
        return {k: convert(v, hints.get(k, Any)) for k, v in value.items()}
    if base is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if base is int and isinstance(value, float) and value.is_integer():
        return int(value)  # 1.0 is an integer of JSON Schema
    if isinstance(value, Mapping) and issubclass(base, _MAPPINGS) and len(args) == 2:
        return {k: convert(v, args[1]) for k, v in value.items()}
    if isinstance(value, list):
        if _is_named_tuple(base):
            hints, names = _hints(base), getattr(base, "_fields")
            return base(*(convert(v, hints.get(n, Any)) for n, v in zip(names, value)))
        if base is tuple and args and args[-1] is not Ellipsis:
            return tuple(convert(v, a) for v, a in zip(value, args))
        items = [convert(v, args[0]) for v in value] if args else value
        return base(items) if base in (tuple, set, frozenset) else items
    return value


def _convert_union(value: Any, members: tuple[Any, ...]) -> Any:
    if value is None:
        return None
    for member in members:
        bare = _bare(member)
        base = get_origin(bare) or bare
        if isinstance(base, type) and (issubclass(base, enum.Enum) or dataclasses.is_dataclass(base) or _is_model(base)):
            try:
                return convert(value, bare)
            except (TypeError, ValueError):
                continue
        if isinstance(value, list) and base in (list, tuple, set, frozenset):
            return convert(value, bare)
    return value


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is typing.Annotated else hint


def _hints(owner: Any) -> dict[str, Any]:
    target = owner if isinstance(owner, type) or inspect.isroutine(owner) else getattr(owner, "func", getattr(type(owner), "__call__", owner))
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as err:
        raise TypeError(f"a type hint of {_name(owner)} cannot be resolved: {err}") from None


def _name(fn: Any) -> str:
    return str(getattr(fn, "__qualname__", fn))


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if value is None or isinstance(value, (str, int)):
        return True
    if isinstance(value, list):
        return all(_is_json(v) for v in value)
    return isinstance(value, dict) and all(isinstance(k, str) and _is_json(v) for k, v in value.items())


_FIELD = re.compile(r"^:param\s+(?:[\w\[\], .|]+\s+)?(\w+):\s*(.*)$")
_ARG = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s+(.*)$")


def _parameter_docs(doc: str) -> dict[str, str]:
    """The words on each parameter, from an ``Args:`` section or ``:param x:`` lines. A line that
    is indented deeper than the entry above it goes on with that entry."""
    told: dict[str, str] = {}
    section, indent, last = False, -1, ""
    for line in doc.splitlines():
        text, depth = line.strip(), len(line) - len(line.lstrip())
        if not text:
            continue
        field = _FIELD.match(text)
        if depth == 0:
            section, indent, last = text in ("Args:", "Arguments:", "Parameters:"), -1, ""
        if section and depth > 0:
            indent = depth if indent < 0 else indent
            field = field or (_ARG.match(text) if depth == indent else None)
        if field:
            last = field[1]
            told[last] = field[2]
        elif last and depth > max(indent, 0):
            told[last] += " " + text
    return {name: words.strip() for name, words in told.items()}
