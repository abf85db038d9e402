"""Calls that a program answers for one example: values, gradients, products with Jacobian and Hessian, matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from engine.calls.call import Call, Results, Scope, checked, labelled, last, outputs_of, parameters
from engine.graph.ir import Value
from engine.graph.program import Program
from engine.graph.tensor_type import TensorType
from engine.transforms.vjp import or_zeros, vjp

#: the role that cotangents are fed under: ("cotangents", node)
COTANGENTS = "cotangents"


@dataclass(frozen=True)
class Values(Call):
    """The values of `outputs`."""

    @classmethod
    def of_program(cls, program: Program, outputs: Sequence[int] | None = None) -> Self:
        """Default to the last node. Raises BadReference and InvalidField."""
        return cls(outputs_of(program, outputs, last(program)))

    def write_graph(self, scope: Scope) -> Results:
        """The values."""
        return Results(scope.values(self.outputs))


@dataclass(frozen=True)
class Gradients(Call):
    """The gradients of `of` with respect to `wrt`; `cotangent` is the type of the seed, None for the number one."""

    of: int
    wrt: tuple[int, ...]
    cotangent: TensorType | None = None

    @classmethod
    def of_program(
        cls,
        program: Program,
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        cotangent: TensorType | None = None,
    ) -> Self:
        """Default to the last node and all parameters, with the value of `of`.

        Raises BadReference, and InvalidField when `wrt` or `outputs` names a node twice, or there is no parameter to
        default to.
        """
        (target,) = checked(program, "of", (last(program) if of is None else of,))
        by = parameters(program, wrt)
        return cls(outputs_of(program, outputs, target), target, by, cotangent)

    @property
    def differentiated(self) -> tuple[int, ...]:
        """`wrt`, then `of`."""
        return (*self.wrt, self.of)

    @property
    def wrt_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    @property
    def gradient_nodes(self) -> tuple[int, ...]:
        """`wrt`."""
        return self.wrt

    def write_graph(self, scope: Scope) -> Results:
        """The values, then the gradients. Raises NotDifferentiable, NonScalarOutput, and what a seed gets wrong."""
        gradients = self.pull(scope)
        whole = or_zeros(self.nodes(scope), gradients)
        lost = tuple(node for node, g in zip(self.wrt, gradients, strict=True) if g is None)
        return Results([*scope.values(self.outputs), *labelled("gradients", self.wrt, whole)], lost)

    def nodes(self, scope: Scope) -> list[Value]:
        """The nodes of `wrt`."""
        return scope.differentiable_nodes("wrt", self.wrt)

    def pull(self, scope: Scope) -> list[Value | None]:
        """The gradients; None where there is no path."""
        nodes = self.nodes(scope)  # first: an integer among them is to blame for an integer `of`
        of, seed = scope.differentiable_node("of", self.of), self._seed(scope)
        scope.begin(self.of)
        return vjp(scope.builder, [(of, seed)], nodes)

    def _seed(self, scope: Scope) -> Value:
        if self.cotangent is None:
            return scope.one(self.of)
        wanted = scope.nodes[self.of].type
        return scope.given(COTANGENTS, "its cotangent", self.of, self.cotangent, wanted)
