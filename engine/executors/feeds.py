"""A plan runs on feeds of the types that it was made for: anything else would be broadcast or cast in silence.

And on feeds that lie as the plan has it, densely, each element at a multiple of its size: kernels know of no strides
but the plan's, and NumPy adds up what lies askew in another order.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from engine.graph.errors import EngineError, MissingFeed
from engine.graph.op import Array
from engine.graph.tensor_type import TensorType, require_type


def fed(feeds: Mapping[Hashable, Array], feed: Hashable, planned: TensorType) -> Array:
    """The array under this key, once it is what was planned, or a copy that lies as planned.

    Raises MissingFeed, ShapeMismatch and DtypeMismatch.
    """
    array = feeds.get(feed)
    if array is None:
        name, node = _named(feed)
        raise MissingFeed(f"{name} is missing", node=node, expected="a feed", got="nothing")
    if array.shape != planned.shape or array.dtype != planned.dtype:
        raise _unfit(feed, TensorType.of(array), planned)
    flags = array.flags
    # CuPy says nothing of alignment: what it allocates has it.
    lies_as_planned = flags.c_contiguous and getattr(flags, "aligned", True)
    return array if lies_as_planned else array.copy(order="C")


def _unfit(feed: Hashable, got: TensorType, planned: TensorType) -> EngineError:
    name, node = _named(feed)
    try:
        require_type(got, planned, name)
    except EngineError as error:
        error.node = node
        return error
    raise AssertionError(f"{got} is {planned}")


def _named(feed: Hashable) -> tuple[str, int | None]:
    """What a feed is called in messages, and the node that it is for: leaves are fed by node, others by role too."""
    match feed:
        case int(node):
            return f"the feed of node {node}", node
        case (str(role), int(node)):
            return f"the feed of node {node} under {role}", node
        case _:
            return f"the feed {feed}", None
