"""No gradient ends in an op that has a rule of gradients: what leaves the numbers that have derivatives says so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, TensorType, Value, registry
from engine.autodiff.vjp import vjp
from engine.ir.graph import inferred
from engine.ir.op import Definition, NoGradient
from engine.ir.tensor_type import ELEMENT_TYPES, INT64
from engine.ir.verify import MalformedGraph, verify
from tests.sampling import together

F = TensorType((2, 3), np.dtype("float64"))
OPS = registry().ops


class Floored(type(OPS["neg"])):  # type: ignore[misc]
    """A mistake: a rule of gradients, and a result that has none."""

    name = "floored"
    internal = True

    def result_dtype(self, *dtypes: Any, **attrs: Any) -> Any:
        """Whole numbers, of whatever comes."""
        return INT64


class Declared(Floored):
    """The same, which says that gradients end."""

    vjp = NoGradient("it is constant between its steps")


def leaf(type: TensorType = F) -> Value:
    return Builder(registry()).leaf(type, 0)


def test_an_op_with_a_rule_may_not_leave_what_is_differentiated() -> None:
    x = leaf()
    with pytest.raises(TypeError, match=r"^floored makes int64\[2,3\] of float64\[2,3\], .* NoGradient") as raised:
        x.builder.emit(Floored(), (x,), {})
    assert not isinstance(raised.value, EngineError), "a rule's mistake is not the client's"
    assert len(x.builder.nodes) == 1, "nothing was written"


def test_nor_in_a_graph_that_was_written_otherwise() -> None:
    x = leaf()
    y = x.builder.append(x.neg().node._replace(op=Floored(), types=(F.with_dtype(INT64),)))
    with pytest.raises(MalformedGraph, match="floored makes int64"):
        verify(x.builder.graph([y]))


def test_it_may_where_it_says_so_or_there_is_nothing_to_lose() -> None:
    x = leaf()
    cut = x.builder.emit(Declared(), (x,), {})
    assert vjp(x.builder, [(cut.cast(dtype=F.dtype).sum(), x.builder.full((), 1.0, F.dtype))], [x]) == [None]
    whole = leaf(F.with_dtype("int32"))
    assert whole.builder.emit(Floored(), (whole,), {}).dtype == INT64


def test_a_cast_to_integers_is_asked_for_by_name() -> None:
    assert leaf().cast(dtype=INT64).dtype == INT64


#: a dtype of each kind
KINDS = tuple({element.kind: np.dtype(element.name) for element in ELEMENT_TYPES}.values())


def typings(op: Definition) -> Iterator[tuple[tuple[TensorType, ...], dict[str, Any]]]:
    """The operand types and attributes of each sample, with every mixture of kinds in place of its dtypes."""
    random = np.random.default_rng(0)
    for sample in op.samples:
        types = [TensorType.of(operand.draw(random)) for operand in sample.operands]
        attrs = {name: attr.check(name, sample.attrs[name]) for name, attr in op.attrs.items() if name in sample.attrs}
        for dtypes in product(KINDS, repeat=len(types)):
            yield tuple(map(TensorType.with_dtype, types, dtypes)), attrs


def disconnected(op: Definition, types: tuple[TensorType, ...], attrs: dict[str, Any]) -> set[str]:
    """Operands whose derivatives end in an op on these types; none where it is refused.

    Raises TypeError where it has a rule of derivatives, and does not say so.
    """
    try:
        results = inferred(op, types, attrs).types
    except EngineError:
        return set()
    if any(type.is_differentiable for type in results):
        return set()
    return {op.operand_name(i) for i, type in enumerate(types) if type.is_differentiable}


@together
@pytest.mark.parametrize("name", sorted(OPS))
def test_every_op_says_whose_gradients_end_in_it(name: str) -> None:
    op = OPS[name]
    ending = set[str]().union(*(disconnected(op, types, attrs) for types, attrs in typings(op)))
    assert ending.issuperset(op.may_disconnect), "it states operands of which it has a rule throughout"
