"""Execution of every op: types, views, strides, memory, narrow floats and empty axes."""

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
    definition_place,
    each,
    feeds_of,
    has_rule,
    run_graph,
    sample,
    samples_of,
    with_gradient,
)
from tests.contract.test_derivatives import gradient_of
from tests.engine.printers import PRINTER
from tests.sampling import sampled, together


@together
@each()
def test_inferred_types_match_outputs_and_views(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    assert tuple(y.type for y in written.outputs) == case.result_types()
    if isinstance(case.op, View):
        node = written.outputs[0].node
        assert TensorType.of(case.op.view(np, arrays[0], **node.attrs)) == node.type


@together
@each()
def test_canonical_attributes_are_idempotent(case: Case) -> None:
    types = [TensorType.of(a) for a in case.arrays()]
    program = case.program()
    canonical = case.op.canonical(dict(program.attrs[len(types)]), *types)
    recanonicalized = case.op.canonical(dict(canonical), *types)
    assert set(recanonicalized) == set(case.op.attrs)
    assert repr(recanonicalized) == repr(canonical)


@together
@sample()
def test_strided_read_only_operands_give_same_result(case: Case) -> None:
    arrays = case.arrays()
    written = case.write(arrays)
    expected = run_graph(written.builder.graph(written.outputs), feeds_of(arrays))
    transposed = transpose_layout(arrays)
    for a in transposed:
        a.flags.writeable = False
    actual = run_graph(graph_on_transposed(written, transposed), feeds_of(transposed))
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


def transpose_layout(arrays: Sequence[Array]) -> list[Array]:
    return [np.ascontiguousarray(a.T).reshape(a.T.shape) for a in arrays]


def graph_on_transposed(written: Written, transposed: Sequence[Array]) -> Graph:
    """Return the same graph for operands with reversed axes, read through transposed views."""
    builder = Builder(registry())
    leaves = [builder.leaf(TensorType.of(a), i) for i, a in enumerate(transposed)]
    values = [x.transpose(axes=tuple(reversed(range(x.ndim)))) if x.ndim else x for x in leaves]
    feeds: dict[int, int] = {}
    for i, node in enumerate(written.builder.nodes):
        operands = [values[feeds[j]] for j in node.operands]
        feeds[i] = len(values)
        values.append(values[node.attrs["feed"]] if node.is_leaf else builder.copy(node, operands))
    return builder.graph([values[feeds[y.index]] for y in written.outputs])


@together
@sample(lambda case: any(o.kind in ("real", "complex") for o in case.sample.operands))
def test_float32_result_matches_float64(case: Case) -> None:
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
    """Return the first sample of each op in both dtypes, and the others alternately."""
    narrow = ["float16", "float32"]
    return [
        (c, d)
        for c in (*all_cases(), *complex_cases())
        if has_rule(c)
        for d in (narrow[c.number % 2 :][:1] if c.number else narrow)
    ]


def aspects_and_dtype(entry: tuple[Case, str]) -> Iterator[Hashable]:
    """Yield the aspects of the case, and its op with the dtype."""
    case, dtype = entry
    yield from aspects(case)
    yield case.op.name, dtype


@together
@pytest.mark.parametrize(("case", "dtype"), sampled(narrow_cases(), aspects_and_dtype), ids=str)
def test_gradient_type_matches_operand(case: Case, dtype: str) -> None:
    arrays = case.arrays(dtype)
    gradients = run_graph(gradient_of(case, dtype), feeds_of(arrays))
    for g, x in zip(gradients, case.write(arrays).float_operands, strict=True):
        assert TensorType.of(g) == x.type


@together
@sample()
def test_empty_axis_runs_or_is_rejected(case: Case) -> None:
    arrays = case.arrays()
    for operand, axis in product(range(len(arrays)), range(4)):
        if axis < arrays[operand].ndim:
            emptied = [a.take([], axis) if i == operand else a for i, a in enumerate(arrays)]
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


def executor_with_fill_byte(byte: int) -> Executor:
    """Return an executor whose fresh memory is filled with the byte."""

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
@sample()
def test_result_does_not_depend_on_uninitialized_memory(case: Case) -> None:
    """Check value and gradient, because fresh memory may hold data of another request."""
    plan = make_plan(with_gradient(case), Limits())
    feeds = {key: a for key, a in feeds_of(case.arrays()).items() if key in plan.feeds}
    zeros, ones_everywhere = (executor_with_fill_byte(byte).run(plan, feeds) for byte in (0x00, 0xFF))
    for a, b in zip(zeros, ones_everywhere, strict=True):
        assert a.tobytes() == b.tobytes() or EXECUTOR.device != "cpu"
        np.testing.assert_allclose(a, b, 1e-12, 1e-14)


#: ops that work in blocks, which are small only relative to LARGE. Two fifths of LARGE are enough for the other ops:
#: one byte per element is then more than SLACK, with three operands and a result in float64
IN_LARGE_BLOCKS = {"conv_transpose1d", "erfinv", "lgamma", "log_ndtr", "zeta"}
#: ops that take hundreds of nanoseconds per element, so that a large batch takes seconds
SLOW = {"polygamma"}


def declares_workspace(op: Definition) -> bool:
    inherited = not isinstance(op, Kernel) or type(op).workspace in (Kernel.workspace, Elementwise.workspace)
    return not inherited or (isinstance(op, Elementwise) and (op.temporaries > 0 or op.scalar is not None))


def is_measured(case: Case) -> bool:
    """Return whether to measure a case: all samples of ops that declare a workspace, else one nonempty sample."""
    samples = [i for i, s in enumerate(samples_of(case.op)) if s.operands and all(0 not in o.shape for o in s.operands)]
    return case.number in (samples if declares_workspace(case.op) and case.op.name not in SLOW else samples[:1])


def layouts(case: Case) -> list[str]:
    """Return the operand layouts: also float16 and strided for the first case of an op that declares a workspace."""
    real = any(o.kind == "real" for o in case.sample.operands)
    several = declares_workspace(case.op) and case.op.name not in SLOW and case.number == 0
    return ["dense", "turned", *["float16"] * real] if several else ["dense"]


def layout_aspects(measured: tuple[Case, str]) -> Iterator[Hashable]:
    """Yield the aspects of a case for its operand layout."""
    case, layout = measured
    yield from ((layout, aspect) for aspect in aspects(case))


MEASURED = [
    (case, layout) for case in (*all_cases(), *complex_cases()) if is_measured(case) for layout in layouts(case)
]


@together
@pytest.mark.slow
@pytest.mark.parametrize(("case", "layout"), sampled(MEASURED, layout_aspects), ids=str)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_measured_peak_matches_plan(case: Case, layout: str) -> None:
    check_peak(case, layout)


def check_peak(case: Case, layout: str) -> None:
    """Assert that the memory peak of a large batch is as planned."""
    arrays = case.arrays("float16" if layout == "float16" else "float64")
    written = case.write(arrays)
    single = written.builder.graph(written.outputs)
    if layout == "turned":
        arrays = transpose_layout(arrays)
        single = graph_on_transposed(written, arrays)
    run_graph(single, feeds_of(arrays))
    large = LARGE if case.op.name in IN_LARGE_BLOCKS else LARGE * 2 // 5
    plan, size = batched_plan(single, len(arrays), large)
    batch = feeds_of([np.repeat(a[None], size, axis=0) for a in arrays])
    assert_planned_peak_holds(
        plan, {key: batch[key] for key in plan.feeds}, f"; state them in {declarations(plan)}", large
    )


def declarations(plan: Plan) -> str:
    """Return where the ops of a plan declare the memory that their kernels allocate."""
    computing = {step.op.name: step.op for step in plan.steps if not isinstance(step.op, View)}
    return ", or in ".join(f"`{declaration(op)}` of {definition_place(op)}" for op in computing.values())


def declaration(op: Kernel) -> str:
    """Return the member that declares it: `temporaries` counts arrays like the result, `workspace` bytes."""
    return "temporaries" if type(op).workspace is Elementwise.workspace else "workspace"


def negate_with_copy(_: Any, run: RunContext, x: Array, *, out: Array) -> None:
    run.xp.negative(x + x, out=out)


@pytest.mark.parametrize(
    ("name", "member", "changed"),
    [
        ("topk", "workspace", {"workspace": Kernel.workspace}),  # never fused
        pytest.param(
            *("sigmoid", "temporaries", {"scalar": None, "compute": negate_with_copy}),
            marks=pytest.mark.skipif(PRINTER != "none", reason="a fused kernel does not call `compute`"),
        ),
    ],
)
@pytest.mark.skipif(EXECUTOR.device != "cpu", reason="tracemalloc sees NumPy's allocations only")
def test_undeclared_workspace_is_reported(
    name: str, member: str, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in all_cases() if case.op.name == name)
    monkeypatch.setattr(sys.modules[__name__], "LARGE", LARGE + LARGE // 50)  # a size that is in no cache
    for attribute, value in changed.items():
        monkeypatch.setattr(type(case.op), attribute, value)
    monkeypatch.setattr(work, "entries", {})  # cached workspace sizes
    declaring_member = rf"`{member}` of class {type(case.op).__name__} \(engine/ops/.*\.py\)"
    message = rf"bytes are allocated .* and 0 declared; state them in {declaring_member}"
    with pytest.raises(AssertionError, match=message):
        check_peak(case, "dense")


def batched_plan(graph: Graph, operands: int, large: int) -> tuple[Plan, int]:
    """Return the plan of a batch whose peak just exceeds `large`, and the batch size."""
    size = 1024
    while True:
        plan = make_plan(optimise(vmap(graph, set(range(operands)), size)), Limits())
        if plan.peak_bytes > large:
            return plan, size
        size = size * 11 * large // (10 * plan.peak_bytes) + 1
