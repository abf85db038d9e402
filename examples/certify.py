"""Certify the gradients of a Gaussian process, and find a mistake in a graph, through HTTP.

`check` compares gradients with central differences in float64, along random directions, and tells which nodes it could
not certify, and why. Here the marginal likelihood of examples/gaussian_process.py passes; the same with a
`stop_gradient` left in it, which still gives a plausible gradient, does not.

    python examples/certify.py                starts a server of its own, and stops it
    python examples/certify.py --url URL      uses one that is running
"""

from __future__ import annotations

from typing import Any

import numpy as np
from client import Client
from gaussian_process import FLOW, YEARS, Process
from run import run


class Mistaken(Process):
    """As its parent, but that amplitude and noise pass through a `stop_gradient` that someone forgot."""

    def scaled(self, x: int, by: int) -> int:
        """by² · x, of which the derivative by `by` is lost."""
        return super().scaled(x, self.graph.op("stop_gradient", by))


def certificate(client: Client, process: Process) -> dict[str, Any]:
    """What the server says of the gradient of −log p(y)."""
    tensors = [
        {"node": node, "tensor": {"dtype": array.dtype.name, "shape": array.shape, "data": array.ravel().tolist()}}
        for node, array in process.feeds(np.log([120.0, 3.0, 110.0])).items()
    ]
    request = {"graph": {"nodes": process.graph.nodes}, "feeds": tensors, "of": process.energy, "directions": 8}
    return client.call("/v1/check", request)


def work(client: Client, years: int) -> None:
    """Check the graph as it should be, and with the mistake."""
    y = FLOW[:years] - FLOW[:years].mean()
    for kind in (Process, Mistaken):
        found = certificate(client, kind(YEARS[:years], y, YEARS[:1]))
        print(f"{kind.__name__}: {'passed' if found['passed'] else 'failed'}, errors {found['errors']}")
        for node in found["uncertified"]:
            print(f"  node {node['node']}: {node['reason']}: {node['detail']}")


if __name__ == "__main__":
    run(work, __doc__, years=40)
