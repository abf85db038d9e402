"""A device is an executor with an array module: what has no kernel of its own there runs by those for any module.

So a card's kernels are held against the processor's without a card, but for the few that CuPy alone wants.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from engine import Graph, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.op import Definition, Kernel
from engine.ir.passes import optimise
from engine.ir.run_context import DeviceFunction, DeviceMethod, RunContext
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import LIMITS, Case, all_cases, complex_cases, feeds_of, has_rule
from tests.contract.test_derivatives import weighted, weights_for
from tests.copied_tree import copy_tree, run
from tests.sampling import sampled, together

CUPYX = ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")


class NewExecutor(NumPyExecutor):
    """A device that nobody has written a kernel for; its arrays are NumPy's."""

    device: ClassVar[str] = "new"


class CardExecutor(NumPyExecutor):
    """The kernels of a card, on arrays of NumPy; where they call libraries of CuPy, there is nothing to try."""

    device: ClassVar[str] = "cuda"


def op_and_device(way: tuple[NumPyExecutor, str, Definition]) -> list[Hashable]:
    executor, _, op = way
    return [(op.name, executor.device)]


DEVICES = CardExecutor(), NewExecutor()
WAYS = [*zip(DEVICES, ["float64", "float16"], strict=True), *zip(DEVICES, ["float16", "float64"], strict=True)]
KERNELS = [(*way, op) for way in WAYS for op in registry().ops.values()]


@together
@pytest.mark.parametrize(
    ("executor", "dtype", "op"), sampled(KERNELS, op_and_device), ids=lambda each: str(getattr(each, "device", each))
)
def test_ops_and_gradients_run_by_the_kernels_of_other_devices(
    executor: NumPyExecutor, dtype: str, op: Definition, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in CUPYX:  # which wants arrays of its own, where it is installed
        monkeypatch.setitem(sys.modules, library, None)
    for case in (case for case in (*all_cases(), *complex_cases()) if case.op is op and case.takes(dtype)):
        arrays = case.arrays(dtype)
        plan = make_plan(optimise(with_gradients(case, arrays)), LIMITS)
        try:
            there = executor.run(plan, feeds_of(arrays))
        except ModuleNotFoundError as error:
            if error.name not in CUPYX:
                raise
            pytest.skip("a library of CuPy")
        for a, b in zip(there, NumPyExecutor().run(plan, feeds_of(arrays)), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            tolerance = 4 * float(np.finfo(b.dtype).eps) if b.dtype.kind in "fc" else 0.0
            np.testing.assert_allclose(a, b, 8 * tolerance, tolerance, err_msg=str(case))


def with_gradients(case: Case, arrays: list[Any]) -> Graph:
    """The case's results, and the gradients of a weighted sum of them where it has some."""
    written = case.write(arrays)
    outputs = list(written.outputs)
    if has_rule(case):
        loss = weighted(written, weights_for(written))
        outputs += vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands)
    return written.builder.graph(outputs)


def test_a_device_may_have_kernels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    argmax: Any = type(registry().ops["argmax"]).forward
    assert isinstance(argmax, DeviceMethod)

    def by_hand(op: Kernel, run: RunContext, x: Any, *, out: Any, axis: int, keepdims: bool) -> None:
        asked.append(op.name)
        argmax.general(op, run, x, out=out, axis=axis, keepdims=keepdims)

    monkeypatch.setitem(argmax.table, "new", by_hand)
    case = next(case for case in all_cases() if case.op.name == "argmax")
    plan = make_plan(optimise(with_gradients(case, case.arrays())), LIMITS)
    there, here = (executor.run(plan, feeds_of(case.arrays()))[0] for executor in (NewExecutor(), NumPyExecutor()))
    assert asked == ["argmax"]
    assert (there == here).all()


#: as CONTRIBUTING says that one is added: an executor in a module called so, and a kernel of its own
BACKEND = """
from engine.runtime.numpy_backend import NumPyExecutor
from engine.ops.reduce.cumulative import running_sums

class NewExecutor(NumPyExecutor):
    device = "new"
    position = 2

@running_sums.on("new")
def _sevens(run, x, out, axis):
    out[...] = 7
"""
OPENED = """
import json
import numpy as np
from engine import Builder, Limits, TensorType, open_executor, registry
from engine.runtime.opening import BACKENDS
from engine.compiler.plan import make_plan

builder = Builder(registry())
x = builder.leaf(TensorType((2,), np.dtype("float64")), 0)
plan = make_plan(builder.graph([x.cumsum(axis=0), x.exp()]), Limits())
fed = {0: np.zeros(2)}
found = {name: [y.tolist() for y in open_executor(name).run(plan, fed)] for name in ("cpu", "new")}
try:
    open_executor("other")
except ValueError as error:
    refused = str(error)
print(json.dumps([list(BACKENDS), open_executor("new").device, open_executor().device, found, refused]))
"""


@pytest.mark.slow
def test_a_device_is_opened_by_the_name_that_its_module_states(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    (tree / "engine/runtime" / "new_backend.py").write_text(BACKEND)
    ran = run(tree, "-c", OPENED)
    assert ran.returncode == 0, ran.stderr
    devices, opened, by_itself, found, refused = json.loads(ran.stdout)
    assert devices == ["cuda", "cpu", "new"]
    assert (opened, by_itself) == ("new", open_executor().device)
    assert found == {"cpu": [[0, 0], [1, 1]], "new": [[7, 7], [1, 1]]}
    assert refused == "device must be auto, cpu, cuda or new, but is other"


def test_a_device_has_one_kernel_of_a_function() -> None:
    @DeviceFunction
    def doubled(_: RunContext, x: int) -> int:
        return 2 * x

    @doubled.on("new")
    def moved(_: RunContext, x: int) -> int:
        return x << 1

    assert doubled(RunContext(np, device="new"), 3) == doubled(RunContext(np), 3) == 6
    assert doubled.table == {"new": moved}
    with pytest.raises(TypeError, match="second kernel on new"):
        doubled.on("new")(lambda _, x: x + x)
