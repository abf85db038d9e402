"""Gradients of ops with an integer beside a float operand are those with the integer as a float."""

from __future__ import annotations

import numpy as np
import pytest

from engine import EngineError
from engine.autodiff.vjp import vjp_or_zeros
from tests.contract.cases import Array, Case, feeds_of, has_rule, run_graph, sample
from tests.contract.test_derivatives import weighted_sum, weights_for
from tests.sampling import sampled, together


def has_several_reals(case: Case) -> bool:
    return has_rule(case) and sum(operand.kind == "real" for operand in case.sample.operands) > 1


def gradients(case: Case, arrays: list[Array], position: int) -> list[Array]:
    """Differentiate a weighted sum of the results with respect to the float operands except the one at `position`."""
    written = case.write(arrays)
    loss = weighted_sum(written, weights_for(written))
    operands = [x for i, x in enumerate(written.operands) if i != position and x.type.is_differentiable]
    graph = written.builder.graph(vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], operands))
    return run_graph(graph, feeds_of(arrays))


@together
@sample(has_several_reals)
@pytest.mark.parametrize(
    "dtype", sampled(["int8", "bool", "int32", "int64", "uint8"], lambda dtype: {dtype} & {"int8", "bool"})
)
def test_gradients_match_those_of_a_float_operand(case: Case, dtype: str) -> None:
    for position, operand in enumerate(case.sample.operands):
        if operand.kind != "real":
            continue
        arrays = case.arrays()
        integers = np.ceil(np.abs(arrays[position])).astype(dtype)
        with_integers = [integers if i == position else a for i, a in enumerate(arrays)]
        with_floats = [integers.astype("float64") if i == position else a for i, a in enumerate(arrays)]
        try:
            written = case.write(with_integers)
        except EngineError:
            continue  # the op takes no integer here
        if not written.float_outputs:
            continue
        for actual, expected in zip(
            gradients(case, with_integers, position), gradients(case, with_floats, position), strict=True
        ):
            np.testing.assert_allclose(actual, expected, 1e-12, 1e-14)
