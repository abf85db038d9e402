"""Guarantee 2: bad input gets a 4xx problem report that names the node, and never causes a 5xx."""

from __future__ import annotations

import pytest

from service.core.errors import UNREADABLE
from tests.guarantees.figures import Figures
from tests.guarantees.jobs import is_right, small
from tests.guarantees.malformed import Case, cases
from tests.guarantees.started import Started
from tests.guarantees.talk import Connection, Hangup

pytestmark = pytest.mark.guarantee(2)


def outcome(server: Started, case: Case) -> str | None:
    """The fault of the response, or None. The connection must remain usable, or be closed."""
    with Connection(server.address) as connection:
        try:
            answer = connection.ask(case.path, case.body, kind=case.kind)
        except (OSError, Hangup) as error:
            return f"{case.name}: {type(error).__name__} {error}"
        refused = 400 <= answer.status < 500 and answer.headers.get("content-type") == "application/problem+json"
        if not refused or UNREADABLE.encode() in answer.body:
            return f"{case.name}: {answer.status} {answer.body[:200]!r}"
        report = answer.json()
        if case.node is not None and report.get("node") != case.node:
            return f"{case.name}: names node {report.get('node')}, not {case.node}"
        if answer.headers.get("connection") == "close":
            return None
        good = connection.ask("/v1/gradients", small())
        return (
            None if good.status == 200 and is_right(good.body) else f"{case.name}: the next request gets {good.status}"
        )


def test_every_bad_input_is_refused(attacked: Started, figures: Figures) -> None:
    wrong = [fault for case in cases() if (fault := outcome(attacked, case))]
    figures.at_most(f"bad inputs not refused as required, of {len(cases())}", len(wrong), 0, "", "; ".join(wrong))
