"""Precision: how products and convolutions read float32 operands on a GPU, as asked for and as answered."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypeAliasType

# The finest first. A message of its own in the document: generators else make one type for each request.
Precision = TypeAliasType("Precision", Literal["float32", "tf32x3", "tf32", "bfloat16"])
