"""Cache of refused kernels: each with its reason, up to a limit."""

from __future__ import annotations

import pytest

from engine.codegen.native import machine_code as refused_kernels
from engine.codegen.native.machine_code import KernelUnavailable, RefusedKernels


def test_reason_is_cached_by_key() -> None:
    refused = RefusedKernels()
    refused.add("a", "too large")
    assert "a" in refused
    with pytest.raises(KernelUnavailable, match="too large"):
        refused.require("a")
    refused.require("b")


def test_oldest_refusal_is_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_kernels, "MOST_REFUSED", 2)
    refused = RefusedKernels()
    for key in ("a", "b", "a", "c"):
        refused.add(key, f"of {key}")
    assert [key in refused for key in "abc"] == [False, True, True]
