"""Max and average pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gradserve_client.graph import Node

#: attributes of an additional axis along which windows have extent 1
_NEUTRAL: Final = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


def append_pool(
    op: str,
    x: Node,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceiling: bool = False,
) -> Node:
    """Append `max_pool` or `avg_pool` over the last one to three axes.

    The 2-d ops support neither dilation nor ceiling mode, so these are expressed as 3-d pooling of volumes with one
    plane.
    """
    axes, is_dilated = len(kernel), {*dilation} != {1}
    attrs: dict[str, Any] = {"kernel_size": [*kernel], "stride": [*stride], "padding": [*padding]}
    if is_dilated:
        attrs["dilation"] = [*dilation]
    as_volume = axes == 2 and (is_dilated or ceiling)
    if as_volume:
        attrs = {name: [_NEUTRAL[name], *listed] for name, listed in attrs.items()}
        x = x.unsqueeze(axes=[-3])
    if ceiling:
        attrs["ceiling"] = True
    result: Node = x.graph.op(f"{op}{3 if as_volume else axes}d", x, **attrs)
    return result.squeeze(axes=[-3]) if as_volume else result
