"""Card kernels of `scan` and `while`, run on the CPU: which kernels there are, and what they launch."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import Compiler, Gradients, Values, registry
from engine.compiler.body_plans import with_compiled_bodies
from engine.compiler.control_flow import PlannedScan
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Plan, Step, graph_of, make_plan
from engine.cuda.binding import CudaBinder
from engine.cuda.cuda_text import cuda_steps
from engine.cuda.kernels import CompiledCudaRecurrence, CudaKernels
from engine.cuda.launch import Launch
from engine.ir.run_context import NO_LIMITS, RunContext
from tests.engine.codegen.kernels.c_compiler import COMPILER, compile_c
from tests.engine.codegen.kernels.cuda_shim import launch_on_host, shimmed
from tests.engine.looping import EXECUTOR, Array, Writer, Written, random, same, written

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


class OnCard(np.ndarray[Any, Any]):
    """An array with its address where CuPy's arrays have it."""

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data)


def on_card(array: Any) -> Array:
    return np.array(array).view(OnCard)


class HostModule:
    """A card's module, built by the machine's C compiler."""

    def __init__(self, op: PlannedScan, folder: Path) -> None:
        assert op.step_loop is not None
        recurrence = op.step_loop.expanded
        text = shimmed(recurrence.fused.dtype, cuda_steps(recurrence))
        self._library = compile_c(text, folder, "-O1", "-Wno-unknown-pragmas")

    def launch(self, launch: Launch) -> None:
        launch_on_host(self._library, launch)


def compiled_plan(loop: Written, call: Any) -> Plan:
    plan = Compiler(NO_LIMITS).compile(loop.program, loop.types, call).plan
    return make_plan(with_compiled_bodies(graph_of(plan, registry()), microkernels=False), NO_LIMITS)


def step(g: Writer, k: int, y: int, u: int) -> list[int]:
    new = g.add(g.mul(k, g.sin(y)), u)
    return [new, y, g.greater(new, y)]


def launched(loop: Written, scan: Step, folder: Path, flag: Array) -> list[Array]:
    """The results of a scan, computed by its single launch."""
    assert isinstance(scan.op, PlannedScan)
    assert scan.op.step_loop is not None
    kernel: Any = CompiledCudaRecurrence(HostModule(scan.op, folder), scan.op.step_loop)  # type: ignore[arg-type]
    out = [on_card(np.full(type.shape, 77, type.dtype)) for type in scan.types]
    operands = [on_card(loop.feeds[i]) for i in scan.operands]
    binder = CudaBinder({scan.op: kernel})
    ((call, arguments),), is_captured, *_ = binder.launches(
        RunContext(np), scan, operands, tuple(out), flag.ctypes.data
    )
    assert is_captured
    call(*arguments)
    return out


@needs_compiler
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (3, 40)])
def test_elementwise_scan_is_one_launch(shape: tuple[int, ...], reverse: bool, tmp_path: Path) -> None:
    loop = written(
        lambda g, *given: g.scan(*given, body=step, carries=1, sequences=1, reverse=reverse),
        *(random(*lead, *shape, seed=i) for i, lead in enumerate([(), (), (6,)])),
    )
    call = Values.of_program(loop.program, loop.results)
    (scan,) = [step for step in compiled_plan(loop, call).steps if isinstance(step.op, PlannedScan)]
    flag = np.zeros(1, np.uint8)
    actual = launched(loop, scan, tmp_path, flag)
    plan = Compiler(NO_LIMITS).compile(loop.program, loop.types, call).plan
    same(actual, EXECUTOR.run(plan, loop.feeds), 1e-13)
    assert not flag[0]


@needs_compiler
def test_out_of_range_step_sets_the_flag(tmp_path: Path) -> None:
    loop = written(
        lambda g, *given: g.scan(*given, body=step, carries=1, sequences=1), *(0.5, 0.5, np.array([0.1, 1e300, 0.2]))
    )
    plan = compiled_plan(loop, Values.of_program(loop.program, loop.results))
    flag = np.zeros(1, np.uint8)
    launched(loop, next(step for step in plan.steps if isinstance(step.op, PlannedScan)), tmp_path, flag)
    assert flag[0] == 1


def test_scan_of_no_steps_calls_the_op_itself() -> None:
    """A kernel would leave the results that only steps write uninitialized."""
    loop = written(lambda g, *given: g.scan(*given, body=step, carries=1, sequences=1), *(0.5, 0.5, np.zeros(0)))
    plan = compiled_plan(loop, Values.of_program(loop.program, loop.results))
    (scan,) = [step for step in plan.steps if isinstance(step.op, PlannedScan)]
    ((call, _),), is_captured, *_ = CudaBinder({scan.op: object()}).launches(RunContext(np), scan, (), (), 0)  # type: ignore[dict-item]
    assert not is_captured
    assert call.func == scan.op.forward  # type: ignore[attr-defined]


def kernels_of(monkeypatch: pytest.MonkeyPatch, loop: Written, call: Any) -> list[Any]:
    """The ops that have card kernels."""
    monkeypatch.setattr("engine.cuda.kernels.card_compilers", lambda cupy: [])
    monkeypatch.setattr(CudaKernels, "module", lambda self, text: text)
    kernels = CudaKernels(None).compile(compiled_plan(loop, call))
    assert kernels
    return list(kernels)


def test_elementwise_scan_needs_no_other_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = written(lambda g, *given: g.scan(*given, body=step, carries=1, sequences=1), 0.5, 0.5, random(6))
    (op,) = kernels_of(monkeypatch, loop, Values.of_program(loop.program, loop.results))
    assert isinstance(op, PlannedScan)


def test_scan_bodies_have_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def recurrent(g: Writer, w: int, y: int) -> list[int]:
        return [g.tanh(g.matmul(w, g.add(y, y)))]

    loop = written(
        lambda g, *given: g.scan(*given, body=recurrent, carries=1, length=6), random(3, 3), random(3, seed=1)
    )
    ops = kernels_of(monkeypatch, loop, Values.of_program(loop.program, loop.results))
    assert all(isinstance(op, Fused) for op in ops)


def test_while_bodies_have_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = written(
        lambda g, *given: g.while_(
            *given,
            condition=lambda g, k, y: [g.less(y, g.number(3.0))],
            body=lambda g, k, y: [g.mul(y, k)],
            carries=1,
            max_steps=5,
        ),
        *(1.25, 0.5),
    )
    ops = kernels_of(monkeypatch, loop, Gradients.of_program(loop.program, outputs=loop.results[:1]))
    assert all(isinstance(op, Fused) for op in ops)
