"""Servers on machines of their own: what network and store do to them, and an owner that is stopped for a while.

`make cluster-chaos` has more, and goes on for longer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tests.cluster_chaos.__main__ import rows_of
from tests.cluster_chaos.network import ALONE
from tests.service.cluster.ingress.support import needs_haproxy

#: seconds before and after each, and those for which the store is away
QUIET, AWAY = 1, 10
FAULTS = ["parted", "answers", "away", "paused"]

pytestmark = [
    needs_haproxy,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="namespaces are made by root, on Linux"),
]


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """What callers were told about each, by its short name."""
    found = rows_of(ALONE, ["tests.cluster_chaos.machines", str(QUIET), str(AWAY), "0", ",".join(FAULTS)])
    return dict(zip(FAULTS, found, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_and_no_answer_is_wrong(rows: dict[str, dict[str, Any]], fault: str) -> None:
    """Nor is a status above 499 another than 503, 504 or 507; and every history is linearizable."""
    row = rows[fault]
    assert row["faults"] == []
    assert row["writes"] > 0
    assert row["computed"] > 0
    assert row["operations"] > 0
