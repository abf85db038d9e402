"""Every kind of attributes: its samples, and the values that ops have, are stated, bound, printed, sent, told apart."""

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
    """Each kind with each of its samples, and with what the samples and defaults of ops state."""
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
def test_what_is_stated_is_bound_and_stated_again(kind: AttributeKind, stated: Any) -> None:
    assert kind.admits(stated)
    value = kind.bound(stated)
    assert kind.is_bound(value)
    again = kind.stated(value)
    assert kind.admits(again)
    assert key(kind.bound(again)) == key(value)


@together
@each
def test_what_is_printed_is_read_again(kind: AttributeKind, stated: Any) -> None:
    value = kind.bound(stated)
    printed = json.loads(json.dumps(kind.printed(value)))
    again = kind.parsed(printed, type_of(value))
    assert kind.is_bound(again)
    assert key(again) == key(value)


@together
@each
def test_what_is_sent_is_read_again(kind: AttributeKind, stated: Any) -> None:
    """Tensors stand for themselves here: their message is the service's."""
    sent = kind.written(kind.stated(kind.bound(stated)), lambda tensor: {"tensor": tensor})
    assert isinstance(sent, dict) is kind.is_object
    again = kind.from_wire(sent, lambda message: message["tensor"])
    assert key(kind.bound(again)) == key(kind.bound(stated))


@together
@each
def test_what_is_remembered_is_hashable_and_keeps_its_name(kind: AttributeKind, stated: Any) -> None:
    value = kind.bound(stated)
    hash(key(value))
    assert json.dumps(kind.canonical(value), sort_keys=True) == json.dumps(kind.canonical(value), sort_keys=True)
    assert is_cacheable(value) is kind.is_cacheable(value)


def test_a_function_is_told_by_what_it_says() -> None:
    kind = ATTRIBUTE_KINDS["function"]
    one, same, other = Callee(b"one"), Callee(b"one"), Callee(b"other")
    assert kind.is_bound(one)
    assert not kind.is_bound(kind.bound(3))
    assert key(one) == key(same) != key(other)
    assert key(kind.bound(3)) == key(3)
    assert not is_cacheable(one)
    assert not kind.admits(-1)


def test_samples_have_keys_and_names_of_their_own() -> None:
    for kind in ATTRIBUTE_KINDS.values():
        bound = [kind.bound(stated) for stated in kind.samples]
        assert len({key(value) for value in bound}) == len(bound)
        assert len({json.dumps(kind.canonical(value), sort_keys=True) for value in bound}) == len(bound)


def test_each_kind_refuses_what_is_of_another() -> None:
    """But for numbers, whose kinds differ in the digits that they keep, and names of dtypes, which are strings."""
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


def test_python_s_types_are_told_by_one_kind_each() -> None:
    forms = [form for kind in ATTRIBUTE_KINDS.values() for form in kind.forms]
    assert len(forms) == len(set(forms))
    assert all(kind.forms or kind.name == "number" for kind in ATTRIBUTE_KINDS.values())


def test_they_stand_in_one_order() -> None:
    known = ["int", "float", "number", "bool", "string", "ints", "dtype", "tensor"]
    assert [name for name in ATTRIBUTE_KINDS if name in known] == known


def test_what_is_long_is_not_remembered() -> None:
    most = LONGEST_CACHED
    assert [is_cacheable(v) for v in ("x" * most, (1,) * most, None)] == [True] * 3
    assert [is_cacheable(v) for v in ("x" * (most + 1), (1,) * (most + 1), np.zeros(1), np.float64(1))] == [False] * 4


def test_values_like_those_of_a_kind_are_told_apart_as_these_are() -> None:
    assert key(np.float64(-0.0)) == key(-0.0) != key(np.float64(0.0))
    mapped = np.zeros(3).view(np.memmap)
    assert key(mapped) == key(np.zeros(3))
    assert len({key(v) for v in ((1, 2.0), (1, 2), (True, 2), (1, -0.0), (1, 0.0), (1, "2.0"))}) == 6


def test_an_unknown_kind_is_refused_where_it_is_declared() -> None:
    with pytest.raises(ValueError, match=r"there is no kind of attributes called floats \(known: int, float, number"):
        Attr("floats")


def test_a_number_has_one_form() -> None:
    assert [exact(n) for n in (1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 + 1, 1e300)] == [
        1, 2**53, 2**53 + 1, 2**63 - 1, 2.0**63, 1e300,
    ]  # fmt: skip
    assert [type(exact(n)) for n in (1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 + 1)] == [float, float, int, int, float]
    assert not ATTRIBUTE_KINDS["number"].is_bound(1)
    assert not ATTRIBUTE_KINDS["float"].is_bound(2**53 + 1)


def test_a_number_that_widens_nothing_is_a_float() -> None:
    assert type(weak_number(2**53 + 1)) is float


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_a_number_of_a_float_dtype_is_a_float(dtype: str) -> None:
    assert type(typed_number(2**53 + 1, np.dtype(dtype))) is float
    assert typed_number(2**53 + 1, np.dtype("int64")) == 2**53 + 1
