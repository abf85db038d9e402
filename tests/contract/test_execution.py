"""How every op runs: types, views, strides, cost, narrow floats, and nothing at all."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import numpy as np
import pytest

from engine import Builder, EngineError, Limits, TensorType
from engine.op import View
from engine.passes.pipeline import optimise
from engine.plan import make_plan
from engine.transforms.vjp import vjp_or_zeros
from engine.transforms.vmap import vmap
from tests.contract.cases import EXECUTOR, Array, Case, assert_planned_peak_holds, each, feeds_of, has_rule, run_graph
from tests.contract.test_derivatives import weighted, weights_for


@each()
def test_inferred_types_are_those_of_the_parts_and_views(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    assert tuple(y.type for y in written.outputs) == case.result_types()
    if isinstance(case.op, View):
        node = written.outputs[0].node
        assert TensorType.of(case.op.view(np, arrays[0], **node.attrs)) == node.type


@each()
def test_canonical_attributes_stay_as_they_are(case: Case) -> None:
    types = [TensorType.of(a) for a in case.arrays()]
    program = case.program()
    once = case.op.canonical(dict(program.attrs[len(types)]), *types)
    again = case.op.canonical(dict(once), *types)
    assert set(again) == set(case.op.attrs)
    assert repr(again) == repr(once)


@each()
def test_a_second_run_on_strided_and_read_only_operands_agrees(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    expected = run_graph(written.builder.graph(written.outputs), feeds_of(arrays))
    turned = [np.ascontiguousarray(a.T).reshape(a.T.shape) for a in arrays]
    for a in turned:
        a.flags.writeable = False
    builder = Builder()
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(turned)]
    values = [x.transpose(axes=tuple(reversed(range(x.ndim)))) if x.ndim else x for x in leaves]
    feeds: dict[int, int] = {}
    for i, node in enumerate(written.builder.nodes):
        operands = [values[feeds[j]] for j in node.operands]
        feeds[i] = len(values)
        values.append(values[node.attrs["feed"]] if node.is_leaf else builder.copy(node, operands))
    found = run_graph(builder.graph([values[feeds[y.index]] for y in written.outputs]), feeds_of(turned))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


@each(lambda case: any(o.kind == "real" for o in case.sample.operands))
def test_float32_follows_float64(case: Case) -> None:
    wide, narrow = case.arrays(), case.arrays("float32")
    exact, rounded = case.write(wide), case.write(narrow)
    for y in rounded.float_outputs:
        stated = "dtype" in case.sample.attrs or not rounded.float_operands
        assert stated or y.dtype == np.float32
    a = run_graph(exact.builder.graph(exact.outputs), feeds_of(wide))
    b = run_graph(rounded.builder.graph(rounded.outputs), feeds_of(narrow))
    for x, y in zip(a, b, strict=True):
        if x.dtype.kind == "f":
            np.testing.assert_allclose(y, x, 2e-5, 2e-5)


@each(has_rule)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_gradients_have_the_dtype_of_their_node(case: Case, dtype: str) -> None:
    arrays = case.arrays(dtype)
    written = case.write(arrays)
    loss = weighted(written, weights_for(written))
    gradients = vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands)
    for g, x in zip(run_graph(written.builder.graph(gradients), feeds_of(arrays)), written.float_operands, strict=True):
        assert TensorType.of(g) == x.type


@each()
def test_an_empty_axis_runs_or_is_refused(case: Case) -> None:
    arrays = case.arrays()
    for which, axis in product(range(len(arrays)), range(4)):
        if axis < arrays[which].ndim:
            emptied = [a.take([], axis) if i == which else a for i, a in enumerate(arrays)]
            with suppress(EngineError):
                run_case_and_gradient(case, emptied)


def run_case_and_gradient(case: Case, arrays: list[Array]) -> None:
    written = case.write(arrays)
    run_graph(written.builder.graph(written.outputs), feeds_of(arrays))
    if has_rule(case):
        ones = [(y, y.full_like(1.0)) for y in written.float_outputs]
        gradients = vjp_or_zeros(written.builder, ones, written.float_operands)
        for g, x in zip(
            run_graph(written.builder.graph(gradients), feeds_of(arrays)), written.float_operands, strict=True
        ):
            assert g.shape == x.shape


BATCH = 8192


@each(lambda case: len(case.sample.operands) > 0)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_measured_peak_is_within_the_planned_one(case: Case) -> None:
    single = case.arrays()
    written = case.write(single)
    graph = vmap(written.builder.graph(written.outputs), set(range(len(single))), BATCH)
    feeds = feeds_of([np.repeat(a[None], BATCH, axis=0) for a in single])
    plan = make_plan(optimise(graph), Limits())
    assert_planned_peak_holds(plan, {key: feeds[key] for key in plan.feeds})
