"""The ten lines of the client's page."""

import gradserve_client as gs

graph = gs.Graph()
x, w = graph.input("x"), graph.parameter("w")
loss = (x * w).tanh().sum()
with gs.Client("http://127.0.0.1:8000") as client:
    answer = client.gradients(graph, {x: [1.0, 2.0], w: [0.5, 0.5]}, of=loss)
    print(answer.value, answer.gradients[w])
