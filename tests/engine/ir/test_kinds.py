"""Attribute kinds: samples and values of ops round-trip through binding, text and wire, and have distinct keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine import TensorType, registry
from engine.ir.attributes import Attr
from engine.ir.kinds import ATTRIBUTE_KINDS, is_cacheable, key
from engine.ir.kinds.kind import LONGEST_CACHED, AttributeKind
from engine.ir.kinds.scalars import Callee, exact, typed_number, weak_number
from engine.ir.tensor_type import COMPLEX, FLOATS
from tests.sampling import together


def values() -> Iterator[Any]:
    """Yield each kind with each of its samples, and with the values in samples and defaults of ops."""
    for kind in ATTRIBUTE_KINDS.values():
        yield from ((kind, stated) for stated in kind.samples)
    for op in registry().ops.values():
        for name, attr in op.attrs.items():
            yield from ((attr.definition, s.attrs[name]) for s in op.samples if s.attrs.get(name) is not None)
            if not attr.required and attr.default is not None:
                yield attr.definition, attr.definition.stated(attr.default)


#: a function is typed by the node that runs it, and stated by an index
VALUES = [(kind, stated) for kind, stated in values() if kind.name != "function"]
each = pytest.mark.parametrize(
    ("kind", "stated"), VALUES, ids=[f"{kind.name}-{i}" for i, (kind, _) in enumerate(VALUES)]
)


def type_of(value: Any) -> TensorType:
    return TensorType.of(value) if isinstance(value, np.ndarray) else TensorType((), np.dtype("float64"))


@together
@each
def test_stated_value_round_trips_through_binding(kind: AttributeKind, stated: Any) -> None:
    assert kind.admits(stated)
    value = kind.bound(stated)
    assert kind.is_bound(value)
    again = kind.stated(value)
    assert kind.admits(again)
    assert key(kind.bound(again)) == key(value)


@together
@each
def test_value_round_trips_through_text(kind: AttributeKind, stated: Any) -> None:
    value = kind.bound(stated)
    printed = json.loads(json.dumps(kind.printed(value)))
    again = kind.parsed(printed, type_of(value))
    assert kind.is_bound(again)
    assert key(again) == key(value)


@together
@each
def test_value_round_trips_through_the_wire(kind: AttributeKind, stated: Any) -> None:
    """Tensors are passed through: their encoding belongs to the service."""
    sent = kind.written(kind.stated(kind.bound(stated)), lambda tensor: {"tensor": tensor})
    assert isinstance(sent, dict) is kind.is_object
    again = kind.from_wire(sent, lambda message: message["tensor"])
    assert key(kind.bound(again)) == key(kind.bound(stated))


@together
@each
def test_key_is_hashable_and_canonical_form_is_stable(kind: AttributeKind, stated: Any) -> None:
    value = kind.bound(stated)
    hash(key(value))
    assert json.dumps(kind.canonical(value), sort_keys=True) == json.dumps(kind.canonical(value), sort_keys=True)
    assert is_cacheable(value) is kind.is_cacheable(value)


def test_function_key_is_its_digest() -> None:
    kind = ATTRIBUTE_KINDS["function"]
    one, same, other = Callee(b"one"), Callee(b"one"), Callee(b"other")
    assert kind.is_bound(one)
    assert not kind.is_bound(kind.bound(3))
    assert key(one) == key(same) != key(other)
    assert key(kind.bound(3)) == key(3)
    assert not is_cacheable(one)
    assert not kind.admits(-1)


def test_samples_have_distinct_keys_and_canonical_forms() -> None:
    for kind in ATTRIBUTE_KINDS.values():
        bound = [kind.bound(stated) for stated in kind.samples]
        assert len({key(value) for value in bound}) == len(bound)
        assert len({json.dumps(kind.canonical(value), sort_keys=True) for value in bound}) == len(bound)


def test_each_kind_refuses_samples_of_other_kinds() -> None:
    """Exceptions: kinds of numbers, which differ only in precision, and names of dtypes, which are strings."""
    admitted = {
        (kind.name, other.name)
        for kind in ATTRIBUTE_KINDS.values()
        for other in ATTRIBUTE_KINDS.values()
        if kind is not other and all(map(kind.admits, other.samples))
    }
    assert admitted == {
        ("float", "int"),
        ("float", "number"),
        ("number", "int"),
        ("number", "float"),
        ("int", "function"),
        ("float", "function"),
        ("number", "function"),
        ("string", "dtype"),
    }


def test_each_python_type_belongs_to_one_kind() -> None:
    forms = [form for kind in ATTRIBUTE_KINDS.values() for form in kind.forms]
    assert len(forms) == len(set(forms))
    assert all(kind.forms or kind.name == "number" for kind in ATTRIBUTE_KINDS.values())


def test_order_of_kinds() -> None:
    expected = ["int", "float", "number", "bool", "string", "ints", "dtype", "tensor"]
    assert [name for name in ATTRIBUTE_KINDS if name in expected] == expected


def test_long_values_are_not_cacheable() -> None:
    most = LONGEST_CACHED
    assert [is_cacheable(v) for v in ("x" * most, (1,) * most, None)] == [True] * 3
    assert [is_cacheable(v) for v in ("x" * (most + 1), (1,) * (most + 1), np.zeros(1), np.float64(1))] == [False] * 4


def test_keys_of_subclasses_match_their_kind() -> None:
    assert key(np.float64(-0.0)) == key(-0.0) != key(np.float64(0.0))
    mapped = np.zeros(3).view(np.memmap)
    assert key(mapped) == key(np.zeros(3))
    assert len({key(v) for v in ((1, 2.0), (1, 2), (True, 2), (1, -0.0), (1, 0.0), (1, "2.0"))}) == 6


def test_unknown_kind_is_refused_at_declaration() -> None:
    with pytest.raises(ValueError, match=r"there is no kind of attributes called floats \(known: int, float, number"):
        Attr("floats")


def test_number_has_one_form() -> None:
    assert [exact(n) for n in (1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 + 1, 1e300)] == [
        1, 2**53, 2**53 + 1, 2**63 - 1, 2.0**63, 1e300,
    ]  # fmt: skip
    assert [type(exact(n)) for n in (1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 + 1)] == [float, float, int, int, float]
    assert not ATTRIBUTE_KINDS["number"].is_bound(1)
    assert not ATTRIBUTE_KINDS["float"].is_bound(2**53 + 1)


def test_weak_number_is_a_float() -> None:
    assert type(weak_number(2**53 + 1)) is float


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_number_of_a_float_dtype_is_a_float(dtype: str) -> None:
    assert type(typed_number(2**53 + 1, np.dtype(dtype))) is float
    assert typed_number(2**53 + 1, np.dtype("int64")) == 2**53 + 1
