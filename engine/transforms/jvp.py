"""Forward mode from two reverse modes: the cotangent map is linear, and its transpose is the tangent map.

No op needs a second rule. The dummy cotangent that the first reverse mode starts from does not occur in the result,
because every rule is linear in its cotangent (J. Townsend, "A new trick for calculating Jacobian vector products").
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.graph.ir import Builder, Value
from engine.transforms.vjp import vjp


def jvp(builder: Builder, outputs: Sequence[Value], tangents: Sequence[tuple[Value, Value]]) -> list[Value | None]:
    """Append the derivative of each output along `tangents`, pairs of a node and its tangent.

    An output that does not depend on those nodes has None. All outputs share the two sweeps, each with a dummy of its
    own: what is written does not grow with their number. What the dummies leave behind is dead code.
    """
    dummies = [builder.leaf(y.type, ("dummy", y.index, len(builder.nodes))) for y in outputs]
    pulled = vjp(builder, list(zip(outputs, dummies, strict=True)), [x for x, _ in tangents])
    seeds = [(g, t) for g, (_, t) in zip(pulled, tangents, strict=True) if g is not None]
    return vjp(builder, seeds, dummies)
