"""Import a PyTorch network as a model of the server, train it there with `store`, and query it with Triton's client.

Start the server with `--facades openinference`.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
import tritonclient.http as triton
from torch import nn

import gradserve_client as gs
from gradserve_client.torch import import_module

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1)).double()
x = 2 * torch.rand(64, 2, dtype=torch.float64) - 1
products = (x[:, :1] * x[:, 1:]).numpy()
imported = import_module(net, [x], free={"input": [0]}, second=[x[:5]])

with gs.Client(url) as client:
    model = imported.to_model(client, "product")
    target = imported.graph.input("target")
    loss = (imported.outputs["output"] - target).square().mean()
    store = {p - 0.2 * loss.grad(p): gs.Store(f"product.{name}") for name, p in imported.parameters.items()}
    training = client.register(imported.graph)
    feeds = model.feeds({"input": x.numpy()}) | {target.id: products}
    losses = [training.forward(feeds, outputs=[loss], store=store).value for _ in range(600)]
    print(f"{losses[0]:.3f} to {losses[-1]:.3f}")

with triton.InferenceServerClient(url.removeprefix("http://")) as client:
    query = triton.InferInput("input", [1, 2], "FP64")
    query.set_data_from_numpy(np.array([[0.5, -0.5]]))
    print(f"0.5 times -0.5 is about {client.infer('product', [query]).as_numpy('output')[0, 0]:.2f}")
