"""Certify the gradients of a Gaussian process, and find a mistake in a graph, over HTTP.

`check` compares gradients with central differences in float64 along random directions. It reports the nodes that it
could not certify, with the reasons. Here the marginal likelihood of examples/gaussian_process.py passes. The same
graph with a forgotten `stop_gradient`, whose gradient still looks plausible, fails.

    python examples/certify.py                starts its own server and stops it
    python examples/certify.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from gaussian_process import FLOW, YEARS, Process
from run import run

import gradserve_client as gs


class Mistaken(Process):
    """The process with a mistake: amplitude and noise pass through a `stop_gradient` that someone forgot."""

    def scaled(self, x: gs.Node, by: gs.Node) -> gs.Node:
        """Return by² · x, without its derivative with respect to `by`."""
        return super().scaled(x, by.stop_gradient())


def work(client: gs.Client, years: int) -> None:
    """Check the correct graph and the one with the mistake."""
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
