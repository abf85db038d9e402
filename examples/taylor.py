"""Compute Taylor coefficients by differentiating a graph repeatedly, over HTTP.

`differentiate` returns the derivative as a graph in the format of a request: the nodes that were sent, under their ids,
followed by those of the derivative. You can store it, read it, send it to `forward` with any feeds of the same types,
or differentiate it again. Here f(x) = exp(sin x), whose series around 0 is 1 + x + x²/2 − x⁴/8 − x⁵/15 + …

    python examples/taylor.py                starts its own server and stops it
    python examples/taylor.py --url URL      uses a running server
"""

from __future__ import annotations

from math import factorial

from run import run

import gradserve_client as gs


def work(client: gs.Client, order: int) -> None:
    """Print the coefficients up to this order, and the series at 1/2 next to the function."""
    first = graph = gs.Graph()
    f = graph.input("x").sin().exp()
    derivatives = [f.id]
    for _ in range(order):
        answer = client.differentiate(graph, {"x": ("float64", ())}, of=derivatives[-1], wrt=["x"])
        derivatives.append(answer.gradients["x"].id)
        graph = answer.graph
    values = client.forward(graph, {"x": 0.0}, outputs=derivatives).values
    coefficients = [value / factorial(k) for k, value in enumerate(values)]
    exact = client.forward(first, {"x": 0.5}).value
    print("coefficients:", *(f"{c:.12f}" for c in coefficients))
    print(f"nodes: {len(first)} sent at first, {len(graph)} with all derivatives")
    print(f"series at 1/2: {sum(c * 0.5**k for k, c in enumerate(coefficients)):.6f}, exact: {exact:.6f}")


if __name__ == "__main__":
    run(work, __doc__, order=8)
