"""Every op with every printer: values and gradients match the interpreter."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest

from engine import Plan
from engine.autodiff.vjp import vjp_or_zeros
from engine.codegen.kernels.program import lanes_of
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import make_plan
from engine.cuda.kernels import cuda_fused_kernel
from engine.ir.passes import optimise
from engine.ops.elementwise.base import Elementwise
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import LIMITS, Array, Case, all_cases, aspects, feeds_of, has_rule
from tests.contract.test_derivatives import weighted_sum, weights_for
from tests.engine.printers import PRINTERS, fused, in_c, on_host, printing
from tests.sampling import each_part, part_of

#: relative to the largest number of a result, and to each number
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
SPECIAL = (
    float("nan"), 0.0, -0.0, float("inf"), float("-inf"), 1.0, -1.0, 0.5, -2.5, 3.0, -7.0, 80.0, -80.0, 200.0, -200.0,
    1e-40, -1e-40, 5e-320, -5e-320, 1e-300, -1e-300, 1e30, -1e30, 1e300, -1e300, 1e5, -1e5,
)  # fmt: skip


def plan_of(case: Case, arrays: Sequence[Array]) -> Plan:
    """Return the plan of a case's results, and of the gradients of their weighted sum."""
    case_graph = case.write(arrays)
    outputs = list(case_graph.outputs)
    if has_rule(case):
        loss = weighted_sum(case_graph, weights_for(case_graph))
        outputs += vjp_or_zeros(case_graph.builder, [(loss, loss.full_like(1.0))], case_graph.float_operands)
    return make_plan(optimise(case_graph.builder.graph(outputs)), LIMITS)


def computed(plan: Plan, arrays: Sequence[Array], printer: str) -> list[Array]:
    with printing(printer):
        return NumPyExecutor().run(plan, feeds_of(arrays))


def interpreted(plan: Plan, arrays: Sequence[Array]) -> list[Array]:
    return NumPyExecutor().interpret(plan, feeds_of(arrays))


def is_fused(plan: Plan) -> bool:
    return any(isinstance(step.op, Fused) for step in plan.steps)


def special(case: Case, dtype: str) -> list[Array] | None:
    """Return all pairs of special values as operands of an elementwise op; None for other ops."""
    if not isinstance(case.op, Elementwise) or case.number:
        return None
    pairs = np.array(list(product(SPECIAL, SPECIAL))).T
    columns = [pairs[0], pairs[1], np.roll(pairs[1], 5)]
    with np.errstate(all="ignore"):
        return [
            columns[k].astype(dtype) if operand.kind == "real" else columns[k] > 0
            for k, operand in enumerate(case.sample.operands)
        ]


CorpusEntry = tuple[str, Plan, list[Array]]


@cache
def corpus(dtype: str, kind: str, part: str) -> list[CorpusEntry]:
    """Return fused plans with operands from the samples, or special values."""
    entries = []
    for case in part_of(part, all_cases(), aspects):
        arrays = case.arrays(dtype) if kind == "samples" else special(case, dtype)
        if arrays is not None:
            plan = plan_of(case, arrays)
            if is_fused(fused(plan, "llvm")):
                entries.append((str(case), plan, arrays))
    return entries


each_kind = pytest.mark.parametrize("kind", ["samples", "special"])
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.slow
@each_kind
@each_dtype
@pytest.mark.parametrize("printer", [name for name in PRINTERS if name not in ("c", "cuda", "ptx")])
@each_part
def test_every_op_matches_the_interpreter(part: str, printer: str, dtype: str, kind: str) -> None:
    for name, plan, arrays in corpus(dtype, kind, part):
        for expected, actual in zip(interpreted(plan, arrays), computed(plan, arrays, printer), strict=True):
            assert_close(actual, expected, name)


def assert_close(actual: Array, expected: Array, name: str) -> None:
    """Compare numbers within a tolerance; subnormals count as equal, zeros have signs, and NaN and ∞ match."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), name
    if actual.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, name)
        return
    tolerance, tiny = TOLERANCE[actual.dtype.name], np.finfo(actual.dtype).tiny
    largest = max(np.abs(expected[np.isfinite(expected)]), default=0)
    allowed = max(min(1.0, largest) * tolerance / 100, 2 * tiny)
    np.testing.assert_allclose(actual, expected, tolerance, allowed, err_msg=name)
    assert_same_zeros(actual, expected, name)


def assert_same_zeros(actual: Array, expected: Array, name: str) -> None:
    zeros = (actual == 0) & (expected == 0)
    np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(expected[zeros]), name)


@pytest.mark.slow
@each_kind
@each_dtype
@pytest.mark.parametrize("printer", ["c", "cuda", "ptx"])
@each_part
@pytest.mark.skipif(not {"c", "cuda", "ptx", "llvm"} <= {*PRINTERS}, reason="there is no C compiler, or no LLVM")
def test_compiling_printers_give_the_same_bits(part: str, printer: str, dtype: str, kind: str) -> None:
    """Compilers are slow, so the sample covers printed instructions, not ops."""
    entries = part_of(part, corpus(dtype, kind, "sample"), printed_features)
    entries += corpus(dtype, kind, "rest") if part == "rest" else []
    build_at_once(printer, [fused(plan, printer) for _, plan, _ in entries])
    for name, plan, arrays in entries:
        for expected, actual in zip(computed(plan, arrays, "llvm"), computed(plan, arrays, printer), strict=True):
            np.testing.assert_array_equal(actual, expected, name)
            if actual.dtype.kind == "f":
                assert_same_zeros(actual, expected, name)


def printed_features(entry: CorpusEntry) -> Iterator[Hashable]:
    """Yield the features a printer writes for a plan: instructions with types, results, and operand levels."""
    for step in fused(entry[1], "llvm").steps:
        if isinstance(step.op, Fused):
            yield from ((i.op, i.type) for i in step.op.expanded.instructions)
            yield from (result.kind for result in step.op.expanded.results)
            yield from (operand.level for operand in step.op.expanded.operands)


def build_at_once(printer: str, plans: Sequence[Plan]) -> None:
    """Compile all kernels of the plans together, because starting a compiler is slow."""
    ops = [step.op for plan in plans for step in plan.steps if isinstance(step.op, Fused)]
    if printer == "c":
        in_c([(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)) for op in ops])
    else:
        on_host(printer, list(map(cuda_fused_kernel, ops)))


@pytest.mark.slow
def test_corpus_covers_most_elementwise_ops() -> None:
    """Without fusion the comparison would be of the interpreter with itself."""
    names = {name.partition("(")[0] for name, _, _ in corpus("float64", "samples", "sample")}
    assert {"tanh", "softmax", "layer_norm", "where", "pow_scalar"} <= names
    assert len(names) > 80


@pytest.mark.slow
@pytest.mark.parametrize("printer", PRINTERS)
def test_each_printer_runs_its_own_kernels(printer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Patching the function of one printer must change what it runs."""
    _, plan, arrays = next(entry for entry in corpus("float64", "samples", "sample") if entry[0].startswith("tanh"))
    compiled = "engine.runtime.numpy_backend.bind_within_range"
    patched = {
        "numpy": "engine.runtime.numpy_backend.bind_blocks",
        "cuda": "tests.engine.printers.run_on_host",
        "ptx": "tests.engine.printers.run_on_host",
        "arrays": "tests.engine.printers.run_on_arrays",
    }
    calls: list[str] = []
    monkeypatch.setattr(patched.get(printer, compiled), lambda *_, **__: calls.append(printer) or ())
    computed(plan, arrays, printer)
    assert calls == [printer]
