"""How every op runs: types, views, strides, cost, narrow floats, and nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pytest

from engine import Builder, EngineError, Graph, Limits, TensorType, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.autodiff.vmap import vmap
from engine.compiler.plan import Plan, make_plan
from engine.ir.graph import work
from engine.ir.op import Definition, Kernel, View
from engine.ir.passes import optimise
from engine.ir.run_context import RunContext
from engine.ops.elementwise.base import Elementwise
from engine.runtime.interpreter import Executor
from tests.contract.cases import (
    EXECUTOR,
    LARGE,
    Array,
    Case,
    Written,
    all_cases,
    aspects,
    assert_planned_peak_holds,
    complex_cases,
    each,
    feeds_of,
    has_rule,
    place,
    run_graph,
    samples_of,
    with_gradient,
)
from tests.contract.test_derivatives import gradient_of
from tests.sampling import sampled, together


@together
@each()
def test_inferred_types_are_those_of_the_parts_and_views(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    assert tuple(y.type for y in written.outputs) == case.result_types()
    if isinstance(case.op, View):
        node = written.outputs[0].node
        assert TensorType.of(case.op.view(np, arrays[0], **node.attrs)) == node.type


@together
@each()
def test_canonical_attributes_stay_as_they_are(case: Case) -> None:
    types = [TensorType.of(a) for a in case.arrays()]
    program = case.program()
    once = case.op.canonical(dict(program.attrs[len(types)]), *types)
    again = case.op.canonical(dict(once), *types)
    assert set(again) == set(case.op.attrs)
    assert repr(again) == repr(once)


@together
@each()
def test_a_second_run_on_strided_and_read_only_operands_agrees(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    expected = run_graph(written.builder.graph(written.outputs), feeds_of(arrays))
    turned = turn(arrays)
    for a in turned:
        a.flags.writeable = False
    found = run_graph(on_turned(written, turned), feeds_of(turned))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


def turn(arrays: Sequence[Array]) -> list[Array]:
    return [np.ascontiguousarray(a.T).reshape(a.T.shape) for a in arrays]


def on_turned(written: Written, turned: Sequence[Array]) -> Graph:
    """The same graph on operands with their axes in reverse order, which it reads as transposed views."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(turned)]
    values = [x.transpose(axes=tuple(reversed(range(x.ndim)))) if x.ndim else x for x in leaves]
    feeds: dict[int, int] = {}
    for i, node in enumerate(written.builder.nodes):
        operands = [values[feeds[j]] for j in node.operands]
        feeds[i] = len(values)
        values.append(values[node.attrs["feed"]] if node.is_leaf else builder.copy(node, operands))
    return builder.graph([values[feeds[y.index]] for y in written.outputs])


@together
@each(lambda case: any(o.kind in ("real", "complex") for o in case.sample.operands))
def test_float32_follows_float64(case: Case) -> None:
    wide, narrow = case.arrays(), case.arrays("float32")
    exact, rounded = case.write(wide), case.write(narrow)
    for y in rounded.float_outputs:
        stated = "dtype" in case.sample.attrs or not rounded.float_operands
        assert stated or y.dtype in (np.float32, np.complex64)
    a = run_graph(exact.builder.graph(exact.outputs), feeds_of(wide))
    b = run_graph(rounded.builder.graph(rounded.outputs), feeds_of(narrow))
    for x, y in zip(a, b, strict=True):
        if x.dtype.kind in "fc":
            np.testing.assert_allclose(y, x, 2e-5, 2e-5)


def narrow_cases() -> list[tuple[Case, str]]:
    """The first sample of an op in both, the others in turn."""
    narrow = ["float16", "float32"]
    return [
        (c, d)
        for c in (*all_cases(), *complex_cases())
        if has_rule(c)
        for d in (narrow[c.number % 2 :][:1] if c.number else narrow)
    ]


@together
@pytest.mark.parametrize(("case", "dtype"), narrow_cases(), ids=str)
def test_gradients_have_the_dtype_of_their_node(case: Case, dtype: str) -> None:
    arrays = case.arrays(dtype)
    found = run_graph(gradient_of(case, dtype), feeds_of(arrays))
    for g, x in zip(found, case.write(arrays).float_operands, strict=True):
        assert TensorType.of(g) == x.type


@together
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


# ---------------------------------------------------------------- memory


def filled(byte: int) -> Executor:
    """An executor whose memory holds this byte everywhere before anything is written."""

    def allocate(nbytes: int) -> Any:
        buffer = EXECUTOR.allocate(nbytes)
        if EXECUTOR.device == "cpu":
            buffer.fill(byte)
        elif nbytes:
            buffer.memset(byte, nbytes)
        return buffer

    executor = open_executor(EXECUTOR.device.partition(":")[0])
    executor.allocate = allocate  # type: ignore[method-assign]
    return executor


@together
@each()
def test_nothing_is_read_before_it_is_written(case: Case) -> None:
    """Neither by the case nor by its gradient: what lay in memory before, another request's data say, has no say."""
    plan = make_plan(with_gradient(case), Limits())
    feeds = {key: a for key, a in feeds_of(case.arrays()).items() if key in plan.feeds}
    zeros, ones_everywhere = (filled(byte).run(plan, feeds) for byte in (0x00, 0xFF))
    for a, b in zip(zeros, ones_everywhere, strict=True):
        assert a.tobytes() == b.tobytes() or EXECUTOR.device != "cpu"
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


#: ops that work in blocks which fill a tenth of less than LARGE. Of the others, that is more than is needed: in two
#: fifths of it, one byte an element is more than SLACK, beside three operands and a result in float64
IN_LARGE_BLOCKS = {"conv_transpose1d", "erfinv", "lgamma", "log_ndtr", "zeta"}
#: of which a large batch takes seconds: hundreds of nanoseconds an element
SLOW = {"polygamma"}


def states_workspace(op: Definition) -> bool:
    inherited = not isinstance(op, Kernel) or type(op).workspace in (Kernel.workspace, Elementwise.workspace)
    return not inherited or (isinstance(op, Elementwise) and (op.temporaries > 0 or op.scalar is not None))


def is_measured(case: Case) -> bool:
    """Every sample of an op that states a workspace; of those that all state none, the first with elements."""
    samples = [i for i, s in enumerate(samples_of(case.op)) if s.operands and all(0 not in o.shape for o in s.operands)]
    return case.number in (samples if states_workspace(case.op) and case.op.name not in SLOW else samples[:1])


def layouts(case: Case) -> list[str]:
    """How operands are given: for the first case of an op that states a workspace, also narrow and as strided views."""
    real = any(o.kind == "real" for o in case.sample.operands)
    several = states_workspace(case.op) and case.op.name not in SLOW and case.number == 0
    return ["dense", "turned", *["float16"] * real] if several else ["dense"]


def as_laid_out(measured: tuple[Case, str]) -> Iterator[Hashable]:
    """The aspects of a case, by how its operands are given."""
    case, layout = measured
    yield from ((layout, aspect) for aspect in aspects(case))


MEASURED = [
    (case, layout) for case in (*all_cases(), *complex_cases()) if is_measured(case) for layout in layouts(case)
]


@together
@pytest.mark.slow
@pytest.mark.parametrize(("case", "layout"), sampled(MEASURED, as_laid_out), ids=str)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_measured_peak_is_the_planned_one(case: Case, layout: str) -> None:
    measure(case, layout)


def measure(case: Case, layout: str) -> None:
    """Fails where a batch, large enough for what it takes to be told, takes another peak than planned."""
    arrays = case.arrays("float16" if layout == "float16" else "float64")
    written = case.write(arrays)
    single = written.builder.graph(written.outputs)
    if layout == "turned":
        arrays = turn(arrays)
        single = on_turned(written, arrays)
    run_graph(single, feeds_of(arrays))
    large = LARGE if case.op.name in IN_LARGE_BLOCKS else LARGE * 2 // 5
    plan, size = batched_plan(single, len(arrays), large)
    batch = feeds_of([np.repeat(a[None], size, axis=0) for a in arrays])
    assert_planned_peak_holds(
        plan, {key: batch[key] for key in plan.feeds}, f"; state them in {declarations(plan)}", large
    )


def declarations(plan: Plan) -> str:
    """Where the ops of a plan that compute something declare what their kernels allocate."""
    computing = {step.op.name: step.op for step in plan.steps if not isinstance(step.op, View)}
    return ", or in ".join(f"`{declaration(op)}` of {place(op)}" for op in computing.values())


def declaration(op: Kernel) -> str:
    """The member that says it: how many arrays like the result; or, where that is no measure, how many bytes."""
    return "temporaries" if type(op).workspace is Elementwise.workspace else "workspace"


def negated_by_way_of_a_copy(_: Any, run: RunContext, x: Array, *, out: Array) -> None:
    run.xp.negative(x + x, out=out)


@pytest.mark.parametrize(
    ("name", "member", "changed"),
    [
        ("topk", "workspace", {"workspace": Kernel.workspace}),  # which is in no loop, whatever is fused
        ("sigmoid", "temporaries", {"scalar": None, "compute": negated_by_way_of_a_copy}),
    ],
)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_memory_that_is_not_declared_is_asked_for(
    name: str, member: str, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in all_cases() if case.op.name == name)
    monkeypatch.setattr(sys.modules[__name__], "LARGE", LARGE + LARGE // 50)  # a size of which nothing is remembered
    for attribute, value in changed.items():
        monkeypatch.setattr(type(case.op), attribute, value)
    monkeypatch.setattr(work, "entries", {})  # what it took before
    place = rf"`{member}` of class {type(case.op).__name__} \(engine/ops/.*\.py\)"
    wanted = rf"bytes are allocated .* and 0 declared; state them in {place}"
    with pytest.raises(AssertionError, match=wanted):
        measure(case, "dense")


def batched_plan(graph: Graph, operands: int, large: int) -> tuple[Plan, int]:
    """The plan of as large a batch as makes its peak `large`, and a little more; and the batch's size."""
    size = 1024
    while True:
        plan = make_plan(optimise(vmap(graph, set(range(operands)), size)), Limits())
        if plan.peak_bytes > large:
            return plan, size
        size = size * 11 * large // (10 * plan.peak_bytes) + 1
