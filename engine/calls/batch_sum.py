"""Sums over examples of values, and the derivatives of a sum, which is one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from engine.calls.batch import Batch
from engine.calls.call import FeedTypes, Results, Scope
from engine.graph.errors import DtypeMismatch, InvalidField
from engine.graph.ir import Origin, Value
from engine.graph.program import Program
from engine.transforms.vmap import vmap_onto


@dataclass(frozen=True)
class BatchSum(Batch):
    """`each`, added up over N examples: no result has their axis. What was differentiated is the sum itself.

    So what is held are cotangents of a batch, of some rows at a time where it is a Jacobian, and never the gradients of
    single examples. Where `is_mean`, whoever adds up divides by N, once and last; `block` is how many examples are to
    be added up by one plan, None where nobody said. The graph that it writes is that of the sum over all that are
    `mapped`.
    """

    is_mean: bool = False
    block: int | None = None

    @classmethod
    def over_program(
        cls,
        program: Program,
        types: FeedTypes,
        mapped: Sequence[int],
        of: int | None = None,
        wrt: Sequence[int] | None = None,
        outputs: Sequence[int] | None = None,
        *,
        is_mean: bool = False,
        block: int | None = None,
    ) -> Self:
        """Defaults as `Batch`. Raises as that does, and InvalidField for a node of `wrt` that examples differ in."""
        call = replace(cls.of_program(program, types, mapped, of, wrt, outputs), is_mean=is_mean, block=block)
        differing = program.dependent(node for node, _ in call.mapped)
        for node in call.wrt_nodes:
            if node in differing:
                detail = "wrt names this node, which examples differ in: a sum over them has no gradient by it"
                error = InvalidField(detail, expected="a node that depends on no mapped leaf")
                raise program.statements[node].located(error, node)
        return call

    def of_examples(self, count: int) -> Self:
        """The sum over so many of the examples."""
        mapped = tuple((node, type.with_shape((count, *type.shape[1:]))) for node, type in self.mapped)
        return replace(self, mapped=mapped, is_mean=False, block=None)

    def write_graph(self, scope: Scope) -> Results:
        """The sums, and the gradients of one. Raises as `each`, and DtypeMismatch for a sum of what is no float."""
        return self.each.write_graph(replace(scope, totals=self._totals(scope)))

    def _totals(self, scope: Scope) -> Mapping[int, Value]:
        """The sum over the examples, for each node that is asked for or differentiated."""
        by = len(self.each.wrt_nodes)
        nodes = list(dict.fromkeys((*self.each.outputs, *self.each.differentiated[by:])))
        for node in nodes:
            _require_float(scope, node)
        many = vmap_onto(scope.builder, [scope.nodes[i] for i in nodes], self._examples(scope), self.size)
        totals = {}
        for node, value in zip(nodes, many, strict=True):
            scope.builder.origin = Origin(node, scope.program.statements[node].op.name)
            totals[node] = value.sum(axes=(0,))
        return totals


def _require_float(scope: Scope, node: int) -> None:
    """Raise DtypeMismatch for a node that is none."""
    dtype = scope.nodes[node].dtype
    if not scope.nodes[node].type.is_differentiable:
        error = DtypeMismatch(
            f"is {dtype.name}, and sums over examples are of floats: cast it, or leave it out of the outputs",
            expected="a float dtype",
            got=dtype.name,
        )
        raise scope.program.statements[node].located(error, node)
