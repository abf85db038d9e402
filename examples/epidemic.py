"""Compute how an epidemic depends on its parameters: the Jacobian of an integrated equation, over HTTP.

The data are from an influenza outbreak in a boarding school of 763 boys in 1978: the number in bed on each of 14 days
(British Medical Journal, 4 March 1978, 587). In the model of Kermack and McKendrick (1927), s′ = −β s i and
i′ = β s i − γ i for the shares s of the susceptible and i of the ill. The classical Runge-Kutta method integrates it,
with each of its steps as nodes of one graph. The Jacobian of the curve with respect to (β, γ) is one call: with two
inputs and 14 outputs, the server uses forward mode. It gives the Gauss-Newton step for least squares, and finally the
standard errors.

    python examples/epidemic.py                starts its own server and stops it
    python examples/epidemic.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

BOYS = 763
ILL = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4.0])

State = tuple[gs.Node, gs.Node]  # the nodes of s and i


class Epidemic:
    """The number of ill boys on each day, as a graph of (β, γ)."""

    def __init__(self, steps: int) -> None:
        g = self.graph = gs.Graph()
        self.rates, start = g.parameter(), ILL[0] / BOYS
        self.beta, self.gamma = (self.rates.slice(starts=[k], stops=[k + 1]) for k in (0, 1))
        state = (g.full(shape=[1], fill=1 - start), g.full(shape=[1], fill=start))
        days = [state]
        for _ in ILL[1:]:
            for _ in range(steps):
                state = self.step(state, 1 / steps)
            days.append(state)
        self.curve = g.cat(*(i for _, i in days), axis=0) * BOYS

    def step(self, at: State, h: float) -> State:
        """Make one Runge-Kutta step of length h."""
        k1 = self.slope(at)
        k2 = self.slope(self.moved(at, k1, h / 2))
        k3 = self.slope(self.moved(at, k2, h / 2))
        k4 = self.slope(self.moved(at, k3, h))
        for k, weight in ((k1, 1), (k2, 2), (k3, 2), (k4, 1)):
            at = self.moved(at, k, weight * h / 6)
        return at

    def slope(self, at: State) -> State:
        """Return (s′, i′)."""
        s, i = at
        infected = self.beta * (s * i)
        recovered = self.gamma * i
        return -infected, infected - recovered

    def moved(self, at: State, along: State, by: float) -> State:
        """Return at + by · along."""
        return at[0] + by * along[0], at[1] + by * along[1]

    def sensitivity(self, client: gs.Client, rates: Array) -> tuple[Array, Array]:
        """Return the curve [14] and its derivative with respect to (β, γ), [14, 2]."""
        answer = client.jacobian(self.graph, {self.rates: rates}, outputs=[self.curve])
        return answer.value, answer.jacobian[self.curve, self.rates]


def fit(client: gs.Client, epidemic: Epidemic, rates: Array) -> Array:
    """Fit by least squares with the Gauss-Newton method, from nearby rates."""
    for _ in range(20):
        curve, j = epidemic.sensitivity(client, rates)
        step = np.linalg.lstsq(j, ILL - curve)[0]
        rates = rates + step
        if np.abs(step).max() < 1e-10:
            break
    return rates


def work(client: gs.Client, steps: int) -> None:
    """Print the sensitivities at a guess, fit, and plot."""
    epidemic = Epidemic(steps)
    print(f"nodes: {len(epidemic.graph)}")
    guess = np.array([1.8, 0.5])
    curve, j = epidemic.sensitivity(client, guess)
    print(f"day 7 at β = 1.8, γ = 0.5: {curve[7]:.6f} ill, by β {j[7, 0]:.6f}, by γ {j[7, 1]:.6f}")
    rates = fit(client, epidemic, guess)
    curve, j = epidemic.sensitivity(client, rates)
    variance = np.sum((ILL - curve) ** 2) / (len(ILL) - 2)
    errors = np.sqrt(np.diag(variance * np.linalg.inv(j.T @ j)))
    print(f"β: {rates[0]:.6f} ± {errors[0]:.4f}")
    print(f"γ: {rates[1]:.6f} ± {errors[1]:.4f}")
    print(f"one boy infects {rates[0] / rates[1]:.2f} others at first")
    draw(curve, j)


def draw(curve: Array, j: Array) -> None:
    """Plot the curve, and its change for a change of a tenth of each parameter."""
    days = np.arange(len(ILL))
    with picture("epidemic", title="influenza, January 1978", xlabel="day", ylabel="boys in bed") as axes:
        axes.plot(days, ILL, "ko", label="counted")
        axes.plot(days, curve, "k", label="fitted")
        axes.plot(days, j[:, 0] / 10, label="∂/∂β · 0.1")
        axes.plot(days, j[:, 1] / 10, label="∂/∂γ · 0.1")


if __name__ == "__main__":
    run(work, __doc__, steps=4)
