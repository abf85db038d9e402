"""Guarantee 17: clients race to store one tensor through different servers, which share an object store."""

from __future__ import annotations

import os

import pytest

from tests.guarantees.figures import Figures
from tests.service.cluster.conftest import nodes, s3_server, shared_place
from tests.service.cluster.serving import Node, raced

__all__ = ["nodes", "s3_server", "shared_place"]

pytestmark = pytest.mark.guarantee(17)
TRIES = int(os.environ.get("GRADSERVE_TEST_RACES", "10000"))


def test_racing_stores_never_share_a_version(nodes: list[Node], figures: Figures) -> None:
    """Each client adds 1 to the version that it read. If each version has one writer, the value is their number."""
    statuses = raced(nodes, TRIES // 2)
    won, lost = statuses[200], statuses[412]
    note = f"{won} versions, {lost} refused with 412"
    figures.at_least("racing stores of two clients through two servers", sum(statuses.values()), TRIES, "", note)
    figures.at_most(
        "racing stores: statuses other than 200 and 412",
        sum(statuses.values()) - won - lost,
        0,
        "",
        str(dict(statuses)),
    )
    wrong = max(abs(node.value("raced") - won) for node in nodes)
    figures.at_most("racing stores: versions not from exactly one store", wrong, 0, "", note)
    assert lost, "no store got a 412: the clients did not race"
