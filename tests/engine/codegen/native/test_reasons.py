"""Reasons are logged once each, up to a limit."""

from __future__ import annotations

import pytest

from engine.codegen.native.machine_code import MOST_LOGGED, Reasons
from tests.engine.runtime.kernel_plans import warnings


def test_each_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reasons = Reasons("it is so: %s")
    for reason in ("one", "other", "one"):
        reasons.log(reason)
    assert warnings(caplog) == ["it is so: one", "it is so: other"]


def test_number_of_logged_reasons_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    reasons = Reasons("%s")
    for k in range(MOST_LOGGED + 3):
        reasons.log(str(k))
    assert len(warnings(caplog)) == MOST_LOGGED
