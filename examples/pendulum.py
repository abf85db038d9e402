"""Compute how much a clock loses when several things change at once: a directional derivative, over HTTP.

The period of a pendulum of length l and amplitude a is 2π √(l/g) / agm(1, cos(a/2)), with Gauss's arithmetic-geometric
mean, of which five steps suffice. On a warm day the rod grows, and the amplitude increases slightly. `jvp` takes both
changes together, and returns the exact first-order change of the period along with its value. The gradient with respect
to each is not needed.

    python examples/pendulum.py                starts its own server and stops it
    python examples/pendulum.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs

DAY = 86_400
LENGTH, GRAVITY, ANGLE = 0.994, 9.81, np.radians(4)
BRASS = 19e-6  # growth for each kelvin


class Pendulum:
    """The period as a graph of length and amplitude."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.length, self.angle = g.input(), g.input()
        a, b = g.full(fill=1), (0.5 * self.angle).cos()
        for _ in range(5):
            a, b = 0.5 * (a + b), (a * b).sqrt()
        self.period = (4 * np.pi**2 / GRAVITY * self.length).sqrt() / a


def work(client: gs.Client) -> None:
    """Print the period, and the loss on a day ten kelvin warmer, with an amplitude a tenth of a degree larger."""
    clock = Pendulum()
    at = {clock.length: LENGTH, clock.angle: ANGLE}
    change = {clock.length: 10 * BRASS * LENGTH, clock.angle: np.radians(0.1)}
    answer = client.jvp(clock.graph, at, tangents=change)
    period, slower = answer.value, answer.tangents[clock.period]
    print(f"period: {period:.12f} s")
    print(f"change: {slower:.12e} s")
    print(f"the clock loses {DAY * slower / period:.2f} s a day")


if __name__ == "__main__":
    run(work, __doc__)
