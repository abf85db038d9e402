"""Forward mode as two passes of reverse mode: the cotangent map is linear, and its transpose is the tangent map.

Reverse mode from a dummy cotangent u emits g(u) = Jᵀu as nodes. These nodes are linear in u, so the vector-Jacobian
product of g with a seed t, taken with respect to u, is (Jᵀ)ᵀt = Jt: the tangent. Ops need no second rule. Linearity
also means that u itself does not occur in the result, so nobody has to feed it (J. Townsend, "A new trick for
calculating Jacobian vector products"). For y = sin(x), u · cos(x) differentiates to t · cos(x).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from engine.autodiff.vjp import Dependence, vjp
from engine.ir.errors import NotDifferentiable
from engine.ir.graph import Builder, Graph, Value, locate_error

#: pairs of a node and its tangent
Tangents = Sequence[tuple[Value, Value]]
#: appends the derivatives of the outputs along tangents
Push = Callable[[Tangents], list[Value | None]]


class Dummy(NamedTuple):
    """Feed key of a dummy cotangent, which nobody feeds."""

    node: int
    number: int


def check_linear(graph: Graph) -> None:
    """Raise NotDifferentiable if a graph without dead code still reads a dummy cotangent.

    Rules of ops are linear in their cotangents, but a client's custom `derivative` may not be.
    """
    # The nodes of the first pass still read dummies, so the check is only meaningful after dead code elimination.
    dummies = {i for i, node in enumerate(graph.nodes) if node.is_leaf and isinstance(node.attrs["feed"], Dummy)}
    for node in graph.nodes if dummies else ():
        if not dummies.isdisjoint(node.operands):
            detail = "a tangent depends on a cotangent here: a `derivative` must be linear in its cotangents"
            error = NotDifferentiable(detail, expected="linear in cotangents", got="not linear")
            raise locate_error(error, node.origin)


def jvp(builder: Builder, outputs: Sequence[Value], tangents: Tangents) -> list[Value | None]:
    """Append the derivative of each output along `tangents`; None for an output that depends on none of their nodes.

    All outputs share the two passes, each with its own dummy, so the number of nodes does not grow with the number of
    outputs. The nodes of the first pass become dead code, apart from those that the tangents use.
    """
    return linearise(builder, outputs, [x for x, _ in tangents])(tangents)


def linearise(
    builder: Builder, outputs: Sequence[Value], wrt: Sequence[Value], dependence: Dependence | None = None
) -> Push:
    """Return a function that appends `jvp` along tangents of any nodes in `wrt`.

    All calls of that function share the first pass. `dependence` is passed on to `vjp`.
    """
    # The number of nodes so far makes the key unique: a graph may be linearised several times, as in a Hessian.
    dummies = [builder.leaf(y.type, Dummy(y.index, len(builder.nodes))) for y in outputs]
    cotangents = vjp(builder, list(zip(outputs, dummies, strict=True)), wrt, dependence)
    pulled = {x.index: g for x, g in zip(wrt, cotangents, strict=True)}

    def push(tangents: Tangents) -> list[Value | None]:
        # Differentiate the gradients with respect to the dummies. `dependence` does not apply, since it is for `wrt`.
        seeds = [(g, t) for x, t in tangents if (g := pulled[x.index]) is not None]
        return vjp(builder, seeds, dummies)

    return push
