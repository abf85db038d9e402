"""Integrate a comet's orbit through its perihelion with adaptive steps: a `while` loop of unknown length.

An orbit of eccentricity 0.967, Halley's, allows steps hundreds of times longer far from the sun than near it. The
method of Dormand and Prince (A family of embedded Runge-Kutta formulae, 1980) estimates the error of each step, which
determines the length of the next. The whole solver is one `while` of the graph. Its backward pass runs over the steps
that were executed.

After one period P the comet is back at its start, with its velocity v along y. With a larger v the period would be
longer, and the comet late by dP: y changes by −v dP/dv. Kepler's third law gives P, and so the gradient in closed form.

    python examples/adaptive.py                starts its own server and stops it
    python examples/adaptive.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import run

import gradserve_client as gs

ECCENTRICITY, MASS = 0.967, 1.0
TOLERANCE, MAX_STEPS = 1e-12, 4096
#: weights of the earlier slopes in each stage; the last row is the fifth-order result
STAGES = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
#: the difference between the fifth-order and the fourth-order result
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


class Orbit:
    """The state (x, y, ẋ, ẏ) at a time, as a graph of the velocity at the perihelion and the mass of the sun."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        self.velocity, self.mass, self.end = g.parameter(), g.parameter(), g.input()
        zero = g.constant(0.0)
        start = g.stack(g.constant(1 - ECCENTRICITY), zero, zero, self.velocity)
        going, step = g.function(is_before_the_end), g.function(adaptive_step)
        first = g.constant(1e-3)
        loop = g.while_(
            self.mass, self.end, zero, start, first, condition=going, body=step, carries=3, max_steps=MAX_STEPS
        )
        self.y = loop.get_output(1).select(1)
        self.steps, self.finished = loop.get_output(3), loop.get_output(4)


def is_before_the_end(f: gs.Graph) -> gs.Node:
    """Return whether time remains."""
    _, end, time, _, _ = (f.input() for _ in range(5))
    return time < end


def adaptive_step(f: gs.Graph) -> list[gs.Node]:
    """Make one step, accept it if its error is within the tolerance, and choose the length of the next."""
    mass, end, time, state, length = (f.input() for _ in range(5))
    length = length.minimum(end - time)
    slopes: list[gs.Node] = []
    after = state
    for row in STAGES:
        after = state + length * weighted(row, slopes) if row else state
        slopes.append(slope(after, mass))
    error = (length * weighted(ERROR, slopes)).abs().max() / TOLERANCE
    fits = error <= 1.0
    # The length of steps changes the result only within the tolerance, so it needs no gradient.
    longer = (0.9 * (-0.2 * (error + 1e-10).log()).exp()).clamp(min=0.2, max=5.0).stop_gradient()
    return [fits.where(time + length, time), fits.where(after, state), length * longer]


def slope(state: gs.Node, mass: gs.Node) -> gs.Node:
    """Return (ẋ, ẏ, −m x/r³, −m y/r³)."""
    place, velocity = (state.slice(starts=[i], stops=[i + 2]) for i in (0, 2))
    r = place.square().sum().sqrt()
    return state.graph.cat(velocity, -mass * place / (r.square() * r), axis=0)


def weighted(row: list[float], slopes: list[gs.Node]) -> gs.Node:
    """Return a weighted sum of slopes, without those of weight 0."""
    first, *others = (weight * each for weight, each in zip(row, slopes, strict=True) if weight)
    for other in others:
        first = first + other
    return first


def exact(velocity: float, mass: float) -> tuple[float, float, float]:
    """Return the period P = 2π √(a³/m), 1/a = 2/r − v²/m, and the derivatives of y after it: −v dP/dv and −v dP/dm."""
    axis = 1 / (2 / (1 - ECCENTRICITY) - velocity**2 / mass)
    period = 2 * np.pi * np.sqrt(axis**3 / mass)
    by_axis = 1.5 * period / axis
    by_velocity = by_axis * axis**2 * 2 * velocity / mass
    by_mass = -by_axis * axis**2 * velocity**2 / mass**2 - period / (2 * mass)
    return period, -velocity * by_velocity, -velocity * by_mass


def work(client: gs.Client) -> None:
    """Integrate one period with adaptive steps, and compare its gradient with the closed form."""
    orbit = Orbit()
    velocity = float(np.sqrt(MASS * (1 + ECCENTRICITY) / (1 - ECCENTRICITY)))
    period, *truth = exact(velocity, MASS)
    feeds = {orbit.velocity: velocity, orbit.mass: MASS, orbit.end: period}
    answer = client.gradients(orbit.graph, feeds, of=orbit.y, outputs=[orbit.steps, orbit.finished])
    print(f"steps: {answer.values[orbit.steps]}, finished: {answer.values[orbit.finished]}")
    for name, leaf, right in zip(("velocity", "mass"), (orbit.velocity, orbit.mass), truth, strict=True):
        found = float(answer.gradients[leaf])
        print(f"by {name}: {found:.8f}, in closed form {right:.8f}, relative error {abs(found / right - 1):.1e}")


if __name__ == "__main__":
    run(work, __doc__)
