"""Ops that came with opset 2 say what PyTorch and JAX call them, or that these have none."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

import pytest

from engine import describe, registry

SPEC: Final[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[1] / "spec" / "opset2.toml").read_text(encoding="utf-8")
)
DOCS: Final = {row["name"]: row["doc"] for row in describe(registry())}
#: what a page calls them by; Flax is the layers of JAX
SPELLED: Final = {"PyTorch": ("PyTorch", "`torch."), "JAX": ("JAX", "`jax.", "Flax")}


@pytest.mark.parametrize("name", [*SPEC["op"], *SPEC["gained"]])
def test_an_op_says_what_others_call_it(name: str) -> None:
    doc = DOCS[name]
    assert not [system for system, names in SPELLED.items() if not any(each in doc for each in names)]
