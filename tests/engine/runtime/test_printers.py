"""Every op by every printer: values and gradients as the interpreter has them, node by node."""

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

#: relative to the largest number of a result, and to each
TOLERANCE = {"float32": 2e-5, "float64": 1e-11}
SPECIAL = (
    float("nan"), 0.0, -0.0, float("inf"), float("-inf"), 1.0, -1.0, 0.5, -2.5, 3.0, -7.0, 80.0, -80.0, 200.0, -200.0,
    1e-40, -1e-40, 5e-320, -5e-320, 1e-300, -1e-300, 1e30, -1e30, 1e300, -1e300, 1e5, -1e5,
)  # fmt: skip


def plan_of(case: Case, arrays: Sequence[Array]) -> Plan:
    """The results of a case, and the gradients of a weighted sum of them."""
    written = case.write(arrays)
    asked = list(written.outputs)
    if has_rule(case):
        loss = weighted_sum(written, weights_for(written))
        asked += vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands)
    return make_plan(optimise(written.builder.graph(asked)), LIMITS)


def computed(plan: Plan, arrays: Sequence[Array], printer: str) -> list[Array]:
    with printing(printer):
        return NumPyExecutor().run(plan, feeds_of(arrays))


def interpreted(plan: Plan, arrays: Sequence[Array]) -> list[Array]:
    return NumPyExecutor().interpret(plan, feeds_of(arrays))


def is_fused(plan: Plan) -> bool:
    return any(isinstance(step.op, Fused) for step in plan.steps)


def special(case: Case, dtype: str) -> list[Array] | None:
    """Every pair of special values as the operands of an elementwise op; None for another op."""
    if not isinstance(case.op, Elementwise) or case.number:
        return None
    pairs = np.array(list(product(SPECIAL, SPECIAL))).T
    columns = [pairs[0], pairs[1], np.roll(pairs[1], 5)]
    with np.errstate(all="ignore"):
        return [
            columns[k].astype(dtype) if operand.kind == "real" else columns[k] > 0
            for k, operand in enumerate(case.sample.operands)
        ]


Fed = tuple[str, Plan, list[Array]]


@cache
def corpus(dtype: str, kind: str, part: str) -> list[Fed]:
    """Plans that are fused, and what they are fed: operands of the samples, or special ones."""
    found = []
    for case in part_of(part, all_cases(), aspects):
        arrays = case.arrays(dtype) if kind == "samples" else special(case, dtype)
        if arrays is not None:
            plan = plan_of(case, arrays)
            if is_fused(fused(plan, "llvm")):
                found.append((str(case), plan, arrays))
    return found


each_kind = pytest.mark.parametrize("kind", ["samples", "special"])
each_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.mark.slow
@each_kind
@each_dtype
@pytest.mark.parametrize("printer", [name for name in PRINTERS if name not in ("c", "cuda", "ptx")])
@each_part
def test_every_op_computes_the_same(part: str, printer: str, dtype: str, kind: str) -> None:
    for name, plan, arrays in corpus(dtype, kind, part):
        for there, here in zip(interpreted(plan, arrays), computed(plan, arrays, printer), strict=True):
            assert_close(here, there, name)


def assert_close(here: Array, there: Array, name: str) -> None:
    """Each number nearly the same, or both subnormal; a zero has its sign, and what is no number its kind."""
    assert (here.dtype, here.shape) == (there.dtype, there.shape), name
    if here.dtype.kind != "f":
        np.testing.assert_array_equal(here, there, name)
        return
    tolerance, tiny = TOLERANCE[here.dtype.name], np.finfo(here.dtype).tiny
    largest = max(np.abs(there[np.isfinite(there)]), default=0)
    allowed = max(min(1.0, largest) * tolerance / 100, 2 * tiny)
    np.testing.assert_allclose(here, there, tolerance, allowed, err_msg=name)
    assert_same_zeros(here, there, name)


def assert_same_zeros(here: Array, there: Array, name: str) -> None:
    zeros = (here == 0) & (there == 0)
    np.testing.assert_array_equal(np.signbit(here[zeros]), np.signbit(there[zeros]), name)


@pytest.mark.slow
@each_kind
@each_dtype
@pytest.mark.parametrize("printer", ["c", "cuda", "ptx"])
@each_part
@pytest.mark.skipif(not {"c", "cuda", "ptx", "llvm"} <= {*PRINTERS}, reason="there is no C compiler, or no LLVM")
def test_all_that_compile_give_the_same_bits(part: str, printer: str, dtype: str, kind: str) -> None:
    """A compiler takes long: the sample is of what there is to be printed, and not of ops."""
    found = part_of(part, corpus(dtype, kind, "sample"), printed)
    found += corpus(dtype, kind, "rest") if part == "rest" else []
    build_at_once(printer, [fused(plan, printer) for _, plan, _ in found])
    for name, plan, arrays in found:
        for there, here in zip(computed(plan, arrays, "llvm"), computed(plan, arrays, printer), strict=True):
            np.testing.assert_array_equal(here, there, name)
            if here.dtype.kind == "f":
                assert_same_zeros(here, there, name)


def printed(fed: Fed) -> Iterator[Hashable]:
    """What a printer has to write for a plan: instructions, of elements or of rows, and kinds of results."""
    for step in fused(fed[1], "llvm").steps:
        if isinstance(step.op, Fused):
            yield from ((i.op, i.type) for i in step.op.expanded.instructions)
            yield from (result.kind for result in step.op.expanded.results)
            yield from (operand.level for operand in step.op.expanded.operands)


def build_at_once(printer: str, plans: Sequence[Plan]) -> None:
    """Compile all kernels of the plans: a compiler takes longer to begin than for a kernel."""
    ops = [step.op for plan in plans for step in plan.steps if isinstance(step.op, Fused)]
    if printer == "c":
        in_c([(op.expanded, lanes_of(op.expanded, op.iteration_space.columns)) for op in ops])
    else:
        on_host(printer, list(map(cuda_fused_kernel, ops)))


@pytest.mark.slow
def test_the_corpus_is_most_of_what_elementwise_ops_there_are() -> None:
    """A loop may go wrong silently: what is not fused is computed by the same steps."""
    found = {name.partition("(")[0] for name, _, _ in corpus("float64", "samples", "sample")}
    assert {"tanh", "softmax", "layer_norm", "where", "pow_scalar"} <= found
    assert len(found) > 80


@pytest.mark.slow
@pytest.mark.parametrize("printer", PRINTERS)
def test_a_printer_runs_what_it_has_made(printer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by itself: broken, it breaks the results."""
    _, plan, arrays = next(found for found in corpus("float64", "samples", "sample") if found[0].startswith("tanh"))
    compiled = "engine.runtime.numpy_backend.bind_within_range"
    broken = {
        "numpy": "engine.runtime.numpy_backend.bind_blocks",
        "cuda": "tests.engine.printers.run_on_host",
        "ptx": "tests.engine.printers.run_on_host",
        "arrays": "tests.engine.printers.run_on_arrays",
    }
    asked: list[str] = []
    monkeypatch.setattr(broken.get(printer, compiled), lambda *_, **__: asked.append(printer) or ())
    computed(plan, arrays, printer)
    assert asked == [printer]
