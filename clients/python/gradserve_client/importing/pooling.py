"""Maxima and means of windows over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gradserve_client.graph import Node

#: of an axis that no window extends along
_NEUTRAL: Final = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


def pooled(
    op: str,
    x: Node,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceiling: bool = False,
) -> Node:
    """`max_pool` or `avg_pool` over one to three axes.

    Gaps and a ceiling, which the op over two has none of, are those of planes that are volumes of one plane.
    """
    axes, gaps = len(kernel), {*dilation} != {1}
    stated: dict[str, Any] = {"kernel_size": [*kernel], "stride": [*stride], "padding": [*padding]}
    if gaps:
        stated["dilation"] = [*dilation]
    flat = axes == 2 and (gaps or ceiling)
    if flat:
        stated = {name: [_NEUTRAL[name], *listed] for name, listed in stated.items()}
        x = x.unsqueeze(axes=[-3])
    if ceiling:
        stated["ceiling"] = True
    made: Node = x.graph.op(f"{op}{3 if flat else axes}d", x, **stated)
    return made.squeeze(axes=[-3]) if flat else made
