"""What could not be made is remembered with its reason, and only so much of it."""

from __future__ import annotations

import pytest

from engine.codegen.native import machine_code as refused_kernels
from engine.codegen.native.machine_code import KernelUnavailable, RefusedKernels


def test_a_reason_is_known_by_its_key() -> None:
    refused = RefusedKernels()
    refused.add("a", "too large")
    assert "a" in refused
    with pytest.raises(KernelUnavailable, match="too large"):
        refused.require("a")
    refused.require("b")


def test_the_first_is_forgotten_for_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_kernels, "MOST_REFUSED", 2)
    refused = RefusedKernels()
    for key in ("a", "b", "a", "c"):
        refused.add(key, f"of {key}")
    assert [key in refused for key in "abc"] == [False, True, True]
