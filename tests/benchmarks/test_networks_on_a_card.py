"""Networks on the stand-in card: each is one graph launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from benchmarks import sides
from benchmarks.problems import networks
from benchmarks.problems.deep_networks import residual_network, transformer
from benchmarks.suite import find
from benchmarks.workload import Workload
from engine import Compiler, open_executor
from engine.runtime.numpy_backend import NumPyExecutor
from tests.engine.cuda.card_memory import CARD
from tests.engine.cuda.stand_in_card import card_in_place

SMALL: Mapping[str, Callable[[], Workload]] = {
    "W2": lambda: networks.perceptron(20, 16, 12, 10, batch=8),
    "W4": lambda: networks.transformer_block(composites=False),
    "N1": lambda: residual_network((4, 6), blocks=1, batch=3, side=24, classes=5),
    "N2": lambda: transformer(1, width=16, heads=2, batch=2, tokens=12),
}


def test_host_to_host_run_is_one_launch_and_one_wait() -> None:
    """The results equal those with arrays that stay on the card."""
    work = find("W1-host")()
    program, types, request = sides.recorded(work)
    plan = Compiler(sides.LIMITS).compile(program, types, request).plan
    with card_in_place():
        call, settle, read = sides.engine_call(plan, work.arrays, "cuda", from_host=work.from_host)
        settle()
        for _ in range(2):
            call()
        before = CARD.graph_launches, CARD.direct_launches, CARD.waits
        results = call()
        assert (CARD.graph_launches, CARD.direct_launches, CARD.waits) == (before[0] + 1, before[1], before[2] + 1)
        resident, settle_resident, read_resident = sides.engine_call(plan, work.arrays, "cuda")
        settle_resident()
        for one, other in zip(read(results), read_resident(resident()), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_network_is_one_graph_launch(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The graph includes the copies to and from the card."""
    for size, extent in {"BATCH": 2, "TIME": 8, "WIDTH": 16, "HEADS": 2}.items():
        monkeypatch.setattr(networks, size, extent)
    monkeypatch.setattr("engine.ops.nn.attention.is_large", lambda *_: True)
    work = SMALL[name]()
    program, types, request = sides.recorded(work)
    plan, feeds = Compiler(sides.LIMITS).compile(program, types, request).plan, dict(enumerate(work.arrays))
    with card_in_place() as card:
        executor = open_executor("cuda", compile="on")
        for _ in range(2):
            executor.run(plan, feeds)
        executor.settle()
        for _ in range(3):
            before = CARD.graph_launches, CARD.direct_launches
            results = executor.run(plan, feeds)
        assert CARD.graph_launches - before[0] == 1
        assert CARD.direct_launches == before[1]
        assert card.cublaslt.calls
    for one, other in zip(results, NumPyExecutor().run(plan, feeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_network_attention_uses_its_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores are treated as too large to store."""
    monkeypatch.setattr("engine.ops.nn.attention.is_large", lambda *_: True)
    program, types, request = sides.recorded(SMALL["N2"]())
    plan = Compiler(sides.LIMITS).compile(program, types, request).plan
    names = {step.op.name for step in plan.steps}
    assert {"attention_rows", "attention_gradients"} <= names
