"""Taylor coefficients by differentiating a graph again and again, through HTTP.

`differentiate` gives the derivative as a graph in the format of a request: the nodes that were sent, under their ids,
and behind them those of the derivative. It can be kept, read, sent to `forward` with any feeds of the same types, or
differentiated again. Here f(x) = exp(sin x), whose series around 0 is 1 + x + x²/2 − x⁴/8 − x⁵/15 + …

    python examples/taylor.py                starts a server of its own, and stops it
    python examples/taylor.py --url URL      uses one that is running
"""

from __future__ import annotations

from math import factorial
from typing import Any

from client import Client, Graph
from run import run


def derivative(client: Client, graph: dict[str, Any], of: int, x: int) -> tuple[dict[str, Any], int]:
    """The graph with the derivative of `of` by x in it, and the node that it is."""
    types = [{"node": x, "dtype": "float64", "shape": []}]
    answer = client.call("/v1/differentiate", {"graph": graph, "types": types, "of": of, "wrt": [x]})
    return answer["graph"], answer["gradients"][0]["gradient_node"]


def work(client: Client, order: int) -> None:
    """Print the coefficients up to this order, and the series at 1/2 beside the function."""
    g = Graph()
    x = g.input()
    f = g.op("exp", g.op("sin", x))
    graph: dict[str, Any] = {"nodes": g.nodes}
    derivatives = [f]
    for _ in range(order):
        graph, found = derivative(client, graph, derivatives[-1], x)
        derivatives.append(found)

    def values(at: float) -> list[float]:
        feed = {"node": x, "tensor": {"dtype": "float64", "shape": [], "data": [at]}}
        answer = client.call("/v1/forward", {"graph": graph, "feeds": [feed], "outputs": derivatives})
        return [entry["tensor"]["data"][0] for entry in answer["values"]]

    coefficients = [value / factorial(k) for k, value in enumerate(values(0.0))]
    print("coefficients:", *(f"{c:.12f}" for c in coefficients))
    print(f"nodes: {len(g.nodes)} sent at first, {len(graph['nodes'])} with all derivatives")
    print(f"series at 1/2: {sum(c * 0.5**k for k, c in enumerate(coefficients)):.6f}, exact: {values(0.5)[0]:.6f}")


if __name__ == "__main__":
    run(work, __doc__, order=8)
