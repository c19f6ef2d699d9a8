"""Schemas of functions, and arguments on their way back."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Sequence, TypedDict, Union

import pytest

from a3s_code import ToolContext
from a3s_code._schema import Signature, convert, schema_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Place(TypedDict, total=False):
    name: str


class Trip(Place):
    stops: List[Point]


class Spot(NamedTuple):
    x: int
    label: str = ""


POINT = {
    "type": "object", "additionalProperties": False, "required": ["x"], "properties": {
        "x": {"type": "integer"}, "y": {"type": "integer", "default": 0}, "tags": {"type": "array", "items": {"type": "string"}}}}

SCHEMAS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (list, {"type": "array"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
    (Spot, {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 1, "maxItems": 2}),
    (dict, {"type": "object"}),
    (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, Any], {"type": "object"}),
    (Optional[int], {"type": ["integer", "null"]}),
    (int | str, {"type": ["integer", "string"]}),
    (Union[list[int], None], {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Color, {"enum": ["red", "blue"]}),
    (Annotated[str, "words"], {"type": "string", "description": "words"}),
    (Point, POINT),
    (Trip, {"type": "object", "additionalProperties": False, "required": ["stops"], "properties": {
        "name": {"type": "string"}, "stops": {"type": "array", "items": POINT}}}),
]


@pytest.mark.parametrize("hint, schema", SCHEMAS, ids=[str(h) for h, _ in SCHEMAS])
def test_schema_of(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


@dataclass
class Loop:
    inner: Optional["Loop"] = None


@pytest.mark.parametrize("hint", [bytes, dict[int, str], object(), Loop, list[complex]])
def test_what_json_cannot_carry(hint: Any) -> None:
    with pytest.raises(TypeError):
        schema_of(hint)


CONVERTED: list[tuple[Any, Any, Any]] = [
    (3, float, 3.0),
    (True, float, True),
    (2.0, int, 2),
    (2.5, int, 2.5),
    ("red", Color, Color.RED),
    ({"x": 1}, Point, Point(1)),
    ([{"x": 1}], list[Point], [Point(1)]),
    ({"a": {"x": 1}}, dict[str, Point], {"a": Point(1)}),
    ({"stops": [{"x": 2, "y": 3}]}, Trip, {"stops": [Point(2, 3)]}),
    ([1, 2], set[int], {1, 2}),
    ([1, {"x": 1}], tuple[int, Point], (1, Point(1))),
    ([1.0], Spot, Spot(1)),
    ([[1, "a"], [2]], list[Spot], [Spot(1, "a"), Spot(2)]),
    (None, Optional[Point], None),
    ({"x": 1}, Optional[Point], Point(1)),
    ("text", Union[Color, str], "text"),
    ("blue", Annotated[Color, "words"], Color.BLUE),
]


@pytest.mark.parametrize("value, hint, wanted", CONVERTED)
def test_convert(value: Any, hint: Any, wanted: Any) -> None:
    got = convert(value, hint)
    assert (got, type(got)) == (wanted, type(wanted))


def weather(city: str, days: Annotated[int, "look ahead"] = 1, *, unit: Literal["C", "F"] = "C", context: ToolContext) -> str:
    """Says what the weather
    will be.

    More for readers.

    Args:
        city: name of the city,
            with its country.
        days: not used, the hint wins.
        unit (str): unit of the answer.

    Returns:
        words: not a parameter.
    """
    return city


def test_signature() -> None:
    signature = Signature(weather, ToolContext)
    assert signature.description == "Says what the weather will be."
    assert signature.context == "context"
    assert signature.parameters == {
        "type": "object", "additionalProperties": False, "required": ["city"], "properties": {
            "city": {"type": "string", "description": "name of the city, with its country."},
            "days": {"type": "integer", "description": "look ahead", "default": 1},
            "unit": {"enum": ["C", "F"], "description": "unit of the answer.", "default": "C"}}}
    with pytest.raises(TypeError, match="unknown argument 'town'"):
        signature.arguments({"town": "x"})


def test_sphinx_docstring() -> None:
    def fn(a: int, b: str = "") -> None:
        """Does it.

        :param a: first
        :param str b: second
        :returns: nothing
        """

    properties = Signature(fn, ToolContext).parameters["properties"]
    assert {k: v.get("description") for k, v in properties.items()} == {"a": "first", "b": "second"}


class Bound:
    def method(self, a: int) -> int:
        return a

    def __call__(self, b: Point) -> int:
        return b.x


def test_methods_and_objects() -> None:
    assert list(Signature(Bound().method, ToolContext).parameters["properties"]) == ["a"]
    signature = Signature(Bound(), ToolContext)
    assert signature.arguments({"b": {"x": 4}}) == {"b": Point(4)}


def test_a_context_that_may_be_missing() -> None:
    def tool(x: int, context: Optional[ToolContext] = None) -> None: ...

    signature = Signature(tool, ToolContext)
    assert signature.context == "context" and list(signature.parameters["properties"]) == ["x"]


def test_defaults_that_json_cannot_say_are_not_told() -> None:
    def tool(limit: float = float("inf"), odd: float = float("nan"), deep: dict[str, list[float]] = {"a": [float("inf")]}) -> None: ...

    schema = Signature(tool, ToolContext).parameters
    assert "required" not in schema and not any("default" in p for p in schema["properties"].values())


def test_signatures_that_no_model_can_call() -> None:
    def many(*args: int) -> None: ...
    def named(**kwargs: int) -> None: ...
    def place(a: int, /) -> None: ...
    def odd(a: bytes) -> None: ...
    def missing(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for fn in (many, named, place, odd, missing):
        with pytest.raises(TypeError, match=fn.__name__):
            Signature(fn, ToolContext)


class Model:
    """What a model of pydantic can do that counts here."""

    defs: dict[str, Any] = {"Inner": {"type": "object", "properties": {"x": {"type": "integer"}}}}

    def __init__(self, inner: int) -> None:
        self.inner = inner

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Inner"}}, "$defs": cls.defs}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        return cls(value["inner"]["x"])

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"inner": self.inner, "as": mode}


class Other(Model):
    defs = {"Inner": {"type": "string"}}


def test_models_of_pydantic() -> None:
    def fn(one: Model, many: list[Model], maybe: Optional[Model] = None) -> None: ...

    signature = Signature(fn, ToolContext)
    bare = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Inner"}}}
    assert signature.parameters == {
        "type": "object", "additionalProperties": False, "required": ["one", "many"], "$defs": Model.defs,
        "properties": {"one": bare, "many": {"type": "array", "items": bare}, "maybe": {"anyOf": [bare, {"type": "null"}], "default": None}}}
    given = {"inner": {"x": 4}}
    made = signature.arguments({"one": given, "many": [given], "maybe": given})
    assert [v.inner for v in (made["one"], *made["many"], made["maybe"])] == [4, 4, 4]
    assert signature.arguments({"maybe": None}) == {"maybe": None}

    def clash(a: Model, b: Other) -> None: ...

    with pytest.raises(TypeError, match="two models have the name Inner"):
        Signature(clash, ToolContext)


def test_a_model_of_pydantic_is_a_result() -> None:
    from a3s_code._tools import _output

    assert json.loads(_output([Model(3)])) == [{"inner": 3, "as": "json"}]
