"""A new device: an executor with an array module, on which ops without a device kernel run the general kernels.

So most GPU kernels are compared with the CPU kernels without a GPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from engine import Graph, open_executor, registry
from engine.autodiff.vjp import vjp_or_zeros
from engine.compiler.plan import make_plan
from engine.ir.op import Kernel
from engine.ir.passes import optimise
from engine.ir.run_context import DeviceFunction, DeviceMethod, RunContext
from engine.runtime.numpy_backend import NumPyExecutor
from tests.contract.cases import LIMITS, Case, all_cases, aspects, complex_cases, feeds_of, has_rule
from tests.contract.test_derivatives import weighted_sum, weights_for
from tests.copied_tree import copy_tree, run
from tests.sampling import sampled, together

CUPYX = ("cupyx", "cupyx.scipy", "cupyx.scipy.linalg")


class NewExecutor(NumPyExecutor):
    """Device without kernels of its own, on NumPy arrays."""

    device: ClassVar[str] = "new"


class CardExecutor(NumPyExecutor):
    """GPU kernels on NumPy arrays. Kernels that call CuPy libraries are skipped."""

    device: ClassVar[str] = "cuda"


def aspects_on_device(entry: tuple[NumPyExecutor, str, Case]) -> Iterator[Hashable]:
    executor, _, case = entry
    return ((executor.device, aspect) for aspect in aspects(case))


DEVICES = CardExecutor(), NewExecutor()
DEVICE_DTYPES = [*zip(DEVICES, ["float64", "float16"], strict=True), *zip(DEVICES, ["float16", "float64"], strict=True)]
DEVICE_CASES = [
    (device, dtype, case)
    for device, dtype in DEVICE_DTYPES
    for case in (*all_cases(), *complex_cases())
    if case.takes(dtype)
]


@together
@pytest.mark.parametrize(
    ("executor", "dtype", "case"),
    sampled(DEVICE_CASES, aspects_on_device),
    ids=lambda each: str(getattr(each, "device", each)),
)
def test_other_device_kernels_match_cpu(
    executor: NumPyExecutor, dtype: str, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in CUPYX:  # requires CuPy arrays, if it is installed
        monkeypatch.setitem(sys.modules, library, None)
    arrays = case.arrays(dtype)
    plan = make_plan(optimise(with_gradients(case, arrays)), LIMITS)
    try:
        results = executor.run(plan, feeds_of(arrays))
    except ModuleNotFoundError as error:
        if error.name not in CUPYX:
            raise
        pytest.skip("a library of CuPy")
    for a, b in zip(results, NumPyExecutor().run(plan, feeds_of(arrays)), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        tolerance = 4 * float(np.finfo(b.dtype).eps) if b.dtype.kind in "fc" else 0.0
        np.testing.assert_allclose(a, b, 8 * tolerance, tolerance)


def with_gradients(case: Case, arrays: list[Any]) -> Graph:
    """Return the results of a case, and the gradients of their weighted sum if it has a gradient rule."""
    written = case.write(arrays)
    outputs = list(written.outputs)
    if has_rule(case):
        loss = weighted_sum(written, weights_for(written))
        outputs += vjp_or_zeros(written.builder, [(loss, loss.full_like(1.0))], written.float_operands)
    return written.builder.graph(outputs)


def test_device_kernel_overrides_general_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    argmax: Any = type(registry().ops["argmax"]).forward
    assert isinstance(argmax, DeviceMethod)

    def device_argmax(op: Kernel, run: RunContext, x: Any, *, out: Any, axis: int, keepdims: bool) -> None:
        calls.append(op.name)
        argmax.general(op, run, x, out=out, axis=axis, keepdims=keepdims)

    monkeypatch.setitem(argmax.table, "new", device_argmax)
    case = next(case for case in all_cases() if case.op.name == "argmax")
    plan = make_plan(optimise(with_gradients(case, case.arrays())), LIMITS)
    on_device, on_cpu = (
        executor.run(plan, feeds_of(case.arrays()))[0] for executor in (NewExecutor(), NumPyExecutor())
    )
    assert calls == ["argmax"]
    assert (on_device == on_cpu).all()


#: device as CONTRIBUTING describes: an executor in a backend module, and one device kernel
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
def test_device_opens_by_name_from_backend_module(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    (tree / "engine/runtime" / "new_backend.py").write_text(BACKEND)
    process = run(tree, "-c", OPENED)
    assert process.returncode == 0, process.stderr
    devices, opened, default, results, refused = json.loads(process.stdout)
    assert devices == ["cuda", "cpu", "new"]
    assert (opened, default) == ("new", open_executor().device)
    assert results == {"cpu": [[0, 0], [1, 1]], "new": [[7, 7], [1, 1]]}
    assert refused == "device must be auto, cpu, cuda or new, but is other"


def test_second_kernel_for_device_is_rejected() -> None:
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
