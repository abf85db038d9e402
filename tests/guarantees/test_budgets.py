"""Guarantee 1: execution stays within the declared budget, and a refusal takes neither time nor memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.guarantees import oversized, processes
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import feed, node, request, small
from tests.guarantees.malformed import Case
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup

pytestmark = pytest.mark.guarantee(1)
MIB = 1 << 20
REFUSAL_MS = 50
#: limits while gradients are built: the deadline of a request, and the memory of their nodes
BUILDING_MS, BUILDING_MIB = 30_000, 512
#: allowance for allocators and for the request itself
SLACK = 24 * MIB


def refusal(server: Started, case: Case) -> tuple[float, str | None]:
    """The milliseconds until an oversized request was refused, and the fault of the response, if any."""
    with Connection(server.address) as connection:
        try:
            answer = connection.ask(case.path, case.body, kind=case.kind)
        except (OSError, Hangup) as error:
            return 0.0, f"{case.name}: {type(error).__name__}"
    right = answer.status in (400, 413, 422)
    return 1000 * answer.seconds, None if right else f"{case.name}: {answer.status} {answer.body[:120]!r}"


def measure_refusals(
    server: Started, cases: Sequence[Case], figures: Figures, suffix: str, most_mib: float, most_ms: float
) -> None:
    """Send oversized requests; measure how many are not refused, the peak memory, and the slowest refusal."""
    for _ in range(20):
        with Connection(server.address) as connection:
            connection.ask("/v1/gradients", small())
    server.settled()
    pids = processes.family(server.pid)
    processes.reset_peak(pids)
    before = processes.peak(pids)
    refusals = {case.name: refusal(server, case) for case in cases}
    grown = (processes.peak(pids) - before) / MIB
    wrong = [text for _, text in refusals.values() if text]
    slow = sorted(refusals, key=lambda name: -refusals[name][0])
    note = ", ".join(f"{name}: {refusals[name][0]:.0f} ms" for name in slow[:4])
    figures.at_most(f"oversized requests not refused, of {len(refusals)}{suffix}", len(wrong), 0, "", "; ".join(wrong))
    figures.at_most(f"peak memory while refusing{suffix}", round(grown, 1), most_mib, "MiB")
    figures.at_most(f"slowest refusal{suffix}", round(refusals[slow[0]][0], 1), most_ms, "ms", note)


def test_oversized_requests_are_refused_at_once_without_memory(attacked: Started, figures: Figures) -> None:
    cases = [case for case in oversized.cases() if case.name not in oversized.LARGE_GRADIENTS]
    measure_refusals(attacked, cases, figures, "", 24, REFUSAL_MS)


def test_gradients_with_too_many_nodes_are_refused_within_the_deadline(attacked: Started, figures: Figures) -> None:
    cases = [case for case in oversized.cases() if case.name in oversized.LARGE_GRADIENTS]
    assert len(cases) == len(oversized.LARGE_GRADIENTS)
    measure_refusals(attacked, cases, figures, " (gradients with too many nodes)", BUILDING_MIB, BUILDING_MS)


@pytest.mark.parametrize("name", oversized.LARGE)
def test_oversized_body_is_refused(attacked: Started, name: str) -> None:
    _, wrong = refusal(attacked, Case(name, oversized.LARGE[name]()))
    assert not wrong, wrong


def within_budget() -> dict[str, bytes]:
    """Calls that need up to a few hundred MB, with bodies of a few hundred bytes."""
    one = [feed(0, [], [0.5], "float64")]
    wide = [node("parameter"), node("broadcast_to", 0, shape=[1500, 1500]), node("tanh", 1)]
    image = [
        node("parameter"),
        node("broadcast_to", 0, shape=[8, 16, 96, 96]),
        node("tanh", 1),
        node("broadcast_to", 0, shape=[16, 16, 3, 3]),
        node("tanh", 3),
        node("conv2d", 2, 4),
        node("mean", 5),
    ]
    chain = [*wide, *(node(("sin", "exp", "tanh")[i % 3], 2 + i) for i in range(12)), node("mean", 14)]
    return {
        "matrix product": request([*wide, node("matmul", 2, 2), node("mean", 3)], one),
        "elementwise chain": request(chain, one),
        "softmax": request([*wide, node("softmax", 2), node("square", 3), node("mean", 4)], one),
        "sort": request([*wide, node("sort", 2, axis=-1), node("square", 3), node("mean", 4)], one),
        "convolution": request(image, one),
        "inverse": request([*wide, node("inv", 2), node("mean", 3)], one),
        "cat and transpose": request(
            [*wide, node("cat", 2, 2, axis=0), node("transpose", 3, axes=[1, 0]), node("mean", 4)], one
        ),
    }


def test_execution_stays_within_declared_memory(start: Callable[..., Started], figures: Figures) -> None:
    over = {}
    for name, body in within_budget().items():
        server = start("--compile", "off")
        with Connection(server.address) as connection:
            connection.ask("/v1/gradients", small())
            server.settled()
            pids = processes.family(server.pid)
            processes.reset_peak(pids)
            before = processes.peak(pids)
            answer = connection.ask("/v1/gradients", body)
            assert answer.status == 200, answer.body
            taken = processes.peak(pids) - before
        server.stop()
        over[name] = (taken - answer.json()["stats"]["peak_bytes"]) / MIB
    worst = max(over, key=lambda name: over[name])
    note = ", ".join(f"{name} {mib:+.0f}" for name, mib in over.items())
    figures.at_most("peak memory above the declared bytes", round(over[worst], 1), SLACK / MIB, "MiB", note)


@pytest.mark.parametrize("room", [-1, 0])
def test_flop_limit_is_exact(start: Callable[..., Started], room: int) -> None:
    """A product of two n × n matrices takes 2 n³ FLOPs; if the limit is one FLOP lower, it is refused."""
    side = 64
    server = start("--max-flops", str(2 * side**3 + room))
    pair = feed(0, [side, side], [0.5] * side**2)
    with Connection(server.address) as connection:
        answer = connection.ask("/v1/forward", request([node("input"), node("matmul", 0, 0)], [pair]))
    assert answer.status == (413 if room < 0 else 200), answer.body
