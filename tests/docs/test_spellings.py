"""PyTorch and JAX names in the documentation of ops added in opset 2."""

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
#: strings that mention a system; Flax has the layers of JAX
SYSTEM_MARKERS: Final = {"PyTorch": ("PyTorch", "`torch."), "JAX": ("JAX", "`jax.", "Flax")}


@pytest.mark.parametrize("name", [*SPEC["op"], *SPEC["gained"]])
def test_op_doc_names_pytorch_and_jax_equivalents(name: str) -> None:
    doc = DOCS[name]
    assert not [system for system, names in SYSTEM_MARKERS.items() if not any(each in doc for each in names)]
