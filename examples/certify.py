"""Certify the gradients of a Gaussian process, and find a mistake in a graph, through HTTP.

`check` compares gradients with central differences in float64, along random directions, and tells which nodes it could
not certify, and why. Here the marginal likelihood of examples/gaussian_process.py passes; the same with a
`stop_gradient` left in it, which still gives a plausible gradient, does not.

    python examples/certify.py                starts a server of its own, and stops it
    python examples/certify.py --url URL      uses one that is running
"""

from __future__ import annotations

import numpy as np
from gaussian_process import FLOW, YEARS, Process
from run import run

import gradserve_client as gs


class Mistaken(Process):
    """As its parent, but that amplitude and noise pass through a `stop_gradient` that someone forgot."""

    def scaled(self, x: gs.Node, by: gs.Node) -> gs.Node:
        """by² · x, of which the derivative by `by` is lost."""
        return super().scaled(x, by.stop_gradient())


def work(client: gs.Client, years: int) -> None:
    """Check the graph as it should be, and with the mistake."""
    y = FLOW[:years] - FLOW[:years].mean()
    for kind in (Process, Mistaken):
        process = kind(YEARS[:years], y, YEARS[:1])
        feeds = process.feeds(np.log([120.0, 3.0, 110.0]))
        found = client.check(process.graph, feeds, of=process.energy, directions=8)
        print(f"{kind.__name__}: {'passed' if found.passed else 'failed'}, errors {found.fields['errors']}")
        for node in found.fields["uncertified"]:
            print(f"  node {node['node']}: {node['reason']}: {node['detail']}")


if __name__ == "__main__":
    run(work, __doc__, years=40)
