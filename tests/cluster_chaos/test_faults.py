"""Faults of the network and the store, and a paused owner, with servers on separate machines.

`make cluster-chaos` has more faults, and takes longer.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tests.cluster_chaos.__main__ import rows_of
from tests.cluster_chaos.network import ALONE
from tests.service.cluster.ingress.support import needs_haproxy

#: seconds before and after each fault, and seconds for which the store is unreachable
QUIET, OUTAGE = 1, 10
FAULTS = ["partition", "responses", "outage", "paused"]

pytestmark = [
    needs_haproxy,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="network namespaces need root on Linux"),
]


@pytest.fixture(scope="module")
def rows() -> dict[str, dict[str, Any]]:
    """The row of each fault, by its short name."""
    reported = rows_of(ALONE, ["tests.cluster_chaos.machines", str(QUIET), str(OUTAGE), "0", ",".join(FAULTS)])
    return dict(zip(FAULTS, reported, strict=True))


@pytest.mark.parametrize("fault", FAULTS)
def test_no_write_is_lost_and_no_response_is_wrong(rows: dict[str, dict[str, Any]], fault: str) -> None:
    """Statuses above 499 are only 503, 504 or 507, and every history is linearizable."""
    row = rows[fault]
    assert row["faults"] == []
    assert row["writes"] > 0
    assert row["computed"] > 0
    assert row["operations"] > 0
