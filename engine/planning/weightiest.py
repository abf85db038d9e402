"""The client's node with most of the peak memory, which a refusal names."""

from __future__ import annotations

from collections.abc import Iterator

from engine.graph.ir import Graph, Origin, works
from engine.planning.arena import live_bytes
from engine.planning.storage import Storage


def weightiest(graph: Graph) -> Origin | None:
    """The client's node that most of the peak stems from; None where that is nobody's node."""
    weights: dict[Origin, int] = {}
    for origin, nbytes in _at_the_peak(Storage(graph)):
        if origin is not None:
            node = origin._replace(backward=False)
            weights[node] = weights.get(node, 0) + nbytes
    return max(weights, key=weights.__getitem__, default=None)


def _at_the_peak(storage: Storage) -> Iterator[tuple[Origin | None, int]]:
    """Origins and bytes of feeds, of what is alive at the peak, and of the workspace of the step there."""
    nodes, blocks, kept = storage.graph.nodes, storage.blocks(), set(storage.kept())
    spaces = [space for _, space in works(nodes, storage.types)]
    needed = [live + space for live, space in zip(live_bytes(blocks, storage.kept()), spaces, strict=False)]
    peak = max(range(len(needed)), key=needed.__getitem__)
    yield nodes[peak].origin, spaces[peak]
    for i, node in enumerate(nodes):
        if node.is_leaf:
            yield node.origin, node.type.nbytes
        elif not storage.is_view[i]:
            first = storage.block[i]
            for k, block in enumerate(blocks[first : first + len(node.types)], first):
                if block.born <= peak and (peak <= block.last or k in kept):
                    yield node.origin, block.nbytes
