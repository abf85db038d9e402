"""What is asked of a program: which values, and which gradients, with defaults filled in and node numbers checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import BadReference, InvalidField
from engine.program import Program
from engine.tensor_type import TensorType


@dataclass(frozen=True, slots=True)
class Request:
    """The values of `outputs`; and, where `wrt` is not empty, the gradients of `of` with respect to it.

    `cotangent` is the type of the seed for `of`; None stands for the number one.
    """

    outputs: tuple[int, ...]
    of: int | None = None
    wrt: tuple[int, ...] = ()
    cotangent: TensorType | None = None

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that must be there, in the order outputs, wrt, of."""
        return (*self.outputs, *self.wrt, *(() if self.of is None else (self.of,)))


def forward_request(program: Program, outputs: Sequence[int] | None) -> Request:
    """Ask for values; by default of the last node. Raises BadReference."""
    return Request(_checked(program, "outputs", outputs or (_last(program),)))


def gradients_request(
    program: Program,
    of: int | None,
    wrt: Sequence[int] | None,
    outputs: Sequence[int] | None,
    cotangent: TensorType | None,
) -> Request:
    """Ask for gradients; by default of the last node, by all parameters, and for the value of `of`.

    Raises BadReference, and InvalidField when `wrt` names a node twice or there is no parameter to default to.
    """
    target = _last(program) if of is None else of
    _checked(program, "of", (target,))
    by = _checked(program, "wrt", wrt or program.parameters)
    if not by:
        raise InvalidField(
            "wrt is empty and the graph has no parameter nodes: name the nodes to differentiate with respect to",
            expected="at least one node in wrt",
            got="none",
        )
    return Request(_checked(program, "outputs", outputs or (target,)), target, _distinct(by), cotangent)


def _last(program: Program) -> int:
    if not program.statements:
        raise InvalidField("the graph has no nodes", expected="at least one node", got="none")
    return len(program.statements) - 1


def _checked(program: Program, field: str, nodes: Sequence[int]) -> tuple[int, ...]:
    count = len(program.statements)
    for node in nodes:
        if not 0 <= node < count:
            raise BadReference(
                f"{field} names node {node}, but the nodes are 0 to {count - 1}" if count else "the graph has no nodes",
                expected=f"0 to {count - 1}",
                got=str(node),
            )
        statement = program.statements[node]
        if statement.op.several:
            several = BadReference(f"{field} names this node, which has several outputs: name a get_output of it")
            raise statement.located(several, node)
    return tuple(nodes)


def _distinct(wrt: tuple[int, ...]) -> tuple[int, ...]:
    seen: set[int] = set()
    for node in wrt:
        if node in seen:
            raise InvalidField(f"wrt names node {node} twice", node=node, expected="distinct nodes")
        seen.add(node)
    return wrt
