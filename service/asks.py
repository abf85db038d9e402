"""What the handlers are asked, in the engine's terms. No HTTP."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from engine import Call, Gradients, Program, TensorType
from schemas import Graph
from service.tensors import Array


@dataclass(frozen=True)
class Compute:
    """Run `call` of a program. `tensors` are the feeds by their node, and what comes beside them by (role, node).

    `encoding` is how the answer holds its tensors: json or base64, or binary for safetensors.
    """

    program: Program
    types: Mapping[int, TensorType]
    call: Call
    tensors: Mapping[Hashable, Array]
    encoding: str = "json"
    diagnose: bool = False


@dataclass(frozen=True)
class Plan:
    """Say what a call would take that is answered in `encoding`, and run nothing."""

    program: Program
    types: Mapping[int, TensorType]
    call: Call
    encoding: str = "json"


@dataclass(frozen=True)
class Check:
    """Compare gradients with differences."""

    program: Program
    feeds: Mapping[int, Array]
    call: Gradients
    directions: int
    tolerance: float


@dataclass(frozen=True)
class Differentiate:
    """Give the gradient as a graph."""

    program: Program
    types: Mapping[int, TensorType]
    call: Gradients
    graph: Graph


Ask = Compute | Plan | Check | Differentiate
