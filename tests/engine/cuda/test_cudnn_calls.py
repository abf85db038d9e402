"""cuDNN plans as calls: the addresses of their tensors, and the stream that they run on."""

from __future__ import annotations

import pytest

from engine.cuda.binding import cudnn_call
from engine.cuda.card_recipe import CardPlace, CudnnPhase
from engine.cuda.cudnn_plans import CudnnLibrary, CudnnPlan
from tests.engine.cuda.cudnn_standin import Cudnn

X, Y, SPACE = CardPlace("operand"), CardPlace("result"), CardPlace("workspace")


def test_plan_runs_on_its_tensors_and_the_current_stream() -> None:
    cudnn = Cudnn()
    library = CudnnLibrary(cudnn, "sm_90")
    plan = CudnnPlan(library.graph("float32"), 64)
    streams = iter([5, 6])
    call = cudnn_call(
        CudnnPhase(plan, ((1, X), (3, Y)), SPACE),
        library,
        {X: 256, Y: 512, SPACE: 1024}.__getitem__,
        lambda: next(streams),
    )
    assert call is not None
    assert not cudnn.launched
    for _ in range(2):
        call[0](*call[1])
    assert cudnn.launched == [(plan.graph, 5, {1: 256, 3: 512}, 1024), (plan.graph, 6, {1: 256, 3: 512}, 1024)]


def test_plan_without_workspace_gets_a_null_address() -> None:
    cudnn = Cudnn()
    library = CudnnLibrary(cudnn, "sm_90")
    phase = CudnnPhase(CudnnPlan(library.graph("float32"), 0), ((1, X),), SPACE)
    call = cudnn_call(phase, library, {X: 16}.__getitem__, lambda: 0)
    assert call is not None
    call[0](*call[1])
    assert cudnn.launched[0][2:] == ({1: 16}, 0)


@pytest.mark.parametrize("lying", [{X: 264, SPACE: 512}, {X: 256, SPACE: 520}])
def test_misaligned_tensors_are_not_launched(lying: dict[CardPlace, int]) -> None:
    library = CudnnLibrary(Cudnn(), "sm_90")
    phase = CudnnPhase(CudnnPlan(library.graph("float32"), 8), ((1, X),), SPACE)
    assert cudnn_call(phase, library, lying.__getitem__, lambda: 0) is None
