"""Compute how three thermometers depend on every heater: several rows of a Jacobian in one call, over HTTP.

A rod of n cells between two ends of temperature 0 has a conductivity and a heater in each cell: K(c) T = q, with the
matrix of second differences. Three thermometers read T. We want the derivatives of each reading with respect to all
conductivities and all heaters. These are three rows of a Jacobian of 2n columns: three vector-Jacobian products, which
`vjp` with `batched` computes in one execution. By the adjoint method (Giles and Pierce, An introduction to the adjoint
approach to design, 2000) the derivative of a reading with respect to q is K⁻ᵀ e.

    python examples/adjoint.py                starts its own server and stops it
    python examples/adjoint.py --url URL      uses a running server
"""

from __future__ import annotations

import numpy as np
from run import picture, run

import gradserve_client as gs
from gradserve_client.tensors import Array

CELLS = 60
THERMOMETERS = [10, 30, 45]


class Rod:
    """The temperatures as a graph of the conductivities of the n + 1 bonds and the heaters of the n cells."""

    def __init__(self) -> None:
        g = self.graph = gs.Graph()
        differences = g.input()
        self.conductivity, self.heat = g.parameter(), g.parameter()
        bonds = self.conductivity.unsqueeze(axes=[1]) * differences
        self.temperature = (differences.transpose() @ bonds).solve(self.heat)
        cells = np.arange(1, CELLS + 1) / (CELLS + 1)
        self.feeds = {
            differences: (CELLS + 1) * np.diff(np.eye(CELLS + 2), axis=0)[:, 1:-1],
            self.conductivity: np.where(np.arange(CELLS + 1) < CELLS // 2, 1.0, 4.0),
            self.heat: 10 * np.sin(np.pi * cells),
        }


def readings(client: gs.Client, rod: Rod) -> tuple[Array, Array, Array]:
    """Return the readings [3] and their derivatives with respect to conductivities [3, n + 1] and heaters [3, n]."""
    picked = np.eye(CELLS)[THERMOMETERS]
    answer = client.vjp(rod.graph, rod.feeds, cotangents={rod.temperature: picked}, batched=True)
    rows = answer.gradients
    return answer.value[THERMOMETERS], rows[rod.conductivity], rows[rod.heat]


def work(client: gs.Client) -> None:
    """Print the readings and their derivatives, and plot the derivatives with respect to the heaters."""
    temperature, by_bond, by_heater = readings(client, Rod())
    for cell, t, bonds, heaters in zip(THERMOMETERS, temperature, by_bond, by_heater, strict=True):
        print(f"cell {cell}: {t:.10f}, by all conductivities {bonds.sum():.10f}, by all heaters {heaters.sum():.10f}")
    with picture("adjoint", title="what each thermometer feels", xlabel="heater", ylabel="∂T / ∂q") as axes:
        for cell, heaters in zip(THERMOMETERS, by_heater, strict=True):
            axes.plot(heaters, label=f"thermometer in cell {cell}")


if __name__ == "__main__":
    run(work, __doc__)
