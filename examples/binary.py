"""Send tensors as bytes, and measure the savings: one gradient in three encodings, over HTTP.

The client sends numbers, base64, or a safetensors file. docs/guide/calls/binary.md explains these encodings and has a
codec of a few lines.

    python examples/binary.py                starts its own server and stops it
    python examples/binary.py --url URL      uses a running server
"""

from __future__ import annotations

import time
from functools import partial

import httpx
import numpy as np
from run import run

import gradserve_client as gs
from gradserve_client.tensors import Form

FORMS: dict[str, Form] = {"JSON numbers": "json", "base64": "base64", "safetensors": "safetensors"}


class Counting(httpx.HTTPTransport):
    """A transport that counts the bytes of request and response bodies."""

    count = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, and count its bytes and those of the response, whose length the server states."""
        response = super().handle_request(request)
        self.count += int(request.headers["Content-Length"]) + int(response.headers["Content-Length"])
        return response


def work(sent: Counting, client: gs.Client, kilobytes: int) -> None:
    """Compute one gradient in three encodings, and print the bytes and the time of each."""
    graph = gs.Graph()
    x = graph.parameter()
    x.square().mean()
    array = np.random.default_rng(0).normal(size=kilobytes * 256).astype(np.float32)
    gradients = []
    for name, form in FORMS.items():
        before, start = sent.count, time.perf_counter()
        gradients.append(client.gradients(graph, {x: array}, form=form).gradients[x])
        print(f"{name}: {sent.count - before} bytes, {1000 * (time.perf_counter() - start):.0f} ms")
    print(f"largest gradient: {gradients[-1].max():.9e}")
    print(f"the same bits: {len({gradient.tobytes() for gradient in gradients}) == 1}")


if __name__ == "__main__":
    counting = Counting()
    run(partial(work, counting), __doc__, counting, kilobytes=4096)
