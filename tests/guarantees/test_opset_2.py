"""Guarantees 2 and 6, for opset 2: invalid and slow requests are refused, degenerate ones answered, no worker lost."""

from __future__ import annotations

import pytest

from tests.guarantees import opset_2
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import is_right, small
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup, once
from tests.guarantees.test_bad_input import outcome

pytestmark = pytest.mark.guarantee(2)
#: a deadline in seconds, shorter than the slow decompositions take
PATIENCE = 2.0


def test_every_bad_opset_2_input_is_refused(attacked: Started, figures: Figures) -> None:
    before = steady_workers(attacked)
    cases = opset_2.cases()
    wrong = [fault for case in cases if (fault := outcome(attacked, case))]
    figure = f"bad opset 2 inputs not refused as required, of {len(cases)}"
    figures.at_most(figure, len(wrong), 0, "", "; ".join(wrong))
    figures.at_most("bad opset 2 inputs: workers lost", lost_workers(attacked, before), 0, "")


def test_degenerate_matrices_and_masks_are_answered(attacked: Started, figures: Figures) -> None:
    """Singular, NaN and empty matrices, and masks that match nothing or everything: no error; NaN if undefined."""
    before = steady_workers(attacked)
    degenerate = opset_2.degenerate()
    wrong = [f"{name}: {fault}" for name, body in degenerate.items() if (fault := fault_of(attacked, body))]
    figures.at_most(
        f"degenerate matrices and masks without an answer, of {len(degenerate)}", len(wrong), 0, "", "; ".join(wrong)
    )
    figures.at_most("degenerate matrices and masks: workers lost", lost_workers(attacked, before), 0, "")


@pytest.mark.guarantee(6)
def test_decomposition_that_would_miss_its_deadline_is_refused(attacked: Started, figures: Figures) -> None:
    """It is refused at its node before LAPACK, which cannot be interrupted, begins."""
    before = steady_workers(attacked)
    wrong = {}
    for op, body in opset_2.slow_decompositions(3_000).items():
        answer = once(attacked.address, f"/v1/forward?timeout_ms={1000 * PATIENCE:.0f}", body)
        if answer.status != 504 or answer.json().get("node") != 3 or answer.seconds > PATIENCE:
            wrong[op] = (answer.status, answer.seconds, answer.body[:200])
    figures.at_most(
        "decompositions that would miss their deadline: not refused at their node", len(wrong), 0, "", str(wrong)
    )
    figures.at_most(
        "decompositions that would miss their deadline: workers lost", lost_workers(attacked, before), 0, ""
    )


def fault_of(server: Started, body: bytes) -> str | None:
    """The fault of the response, or None."""
    with Connection(server.address) as connection:
        try:
            answer = connection.ask("/v1/gradients", body)
        except (OSError, Hangup) as error:
            return f"{type(error).__name__} {error}"
    return None if answer.status == 200 else f"{answer.status} {answer.body[:300]!r}"


def steady_workers(server: Started) -> set[int]:
    """Wait until all workers of a server have started, and return them."""
    once(server.address, "/v1/gradients", small())
    server.await_spare()
    return set(server.workers)


def lost_workers(server: Started, before: set[int]) -> int:
    """Count the workers that have exited, and check that the server still computes."""
    assert is_right(once(server.address, "/v1/gradients", small()).body)
    return len(before.difference(server.workers))
