"""Guarantee 17: clients that race through different servers, on a store that decides writes one by one."""

from __future__ import annotations

import os

import pytest

from tests.guarantees.figures import Figures
from tests.service.cluster.conftest import nodes, s3_server, shared_place
from tests.service.cluster.serving import Node, raced

__all__ = ["nodes", "s3_server", "shared_place"]

pytestmark = pytest.mark.guarantee(17)
TRIES = int(os.environ.get("GRADSERVE_TEST_RACES", "10000"))


def test_races_through_two_servers(nodes: list[Node], figures: Figures) -> None:
    """Each client adds 1 to the version that it read: the value counts the versions, if each comes from one client."""
    statuses = raced(nodes, TRIES // 2)
    won, lost = statuses[200], statuses[412]
    note = f"{won} versions, {lost} told that another was first"
    figures.at_least("stores of two clients that race through two servers", sum(statuses.values()), TRIES, "", note)
    figures.at_most(
        "of these, answered neither 200 nor 412", sum(statuses.values()) - won - lost, 0, "", str(dict(statuses))
    )
    wrong = max(abs(node.value("raced") - won) for node in nodes)
    figures.at_most("versions from none of them, or from two", wrong, 0, "", note)
    assert lost, "nobody was late: they did not race"
