"""The Python client of gradserve: build a computation graph, send it with its tensors, get gradients back.

import gradserve_client as gs

graph = gs.Graph()
x, w = graph.input("x"), graph.parameter("w")
loss = (x * w).tanh().sum()
with gs.Client("http://127.0.0.1:8000") as client:
answer = client.gradients(graph, {x: [1.0, 2.0], w: [0.5, 0.5]})
print(answer.value, answer.gradients[w])
"""

from __future__ import annotations

from gradserve_client.answers import (
    Answer,
    Batched,
    Certificate,
    Derivative,
    Forecast,
    Gradients,
    Hessian,
    HessianMatrix,
    Hvp,
    Jacobian,
    NodeOffset,
    Results,
    Tangents,
    Values,
)
from gradserve_client.async_client import AsyncClient, AsyncModel, AsyncRegisteredGraph
from gradserve_client.client import Client, Model, RegisteredGraph
from gradserve_client.errors import (
    AnswerTooLarge,
    AuthenticationError,
    ConditionError,
    ConnectionFailed,
    DeadlineError,
    DeadlineRefusal,
    GradserveError,
    GraphError,
    InputError,
    MalformedAnswer,
    NotFoundError,
    OverloadError,
    RateError,
    Refusal,
    ServerError,
    StoreFullError,
    TransportError,
)
from gradserve_client.graph import Graph, GraphFunction, Node
from gradserve_client.models import BoundLeaf, ModelSummary, ModelValue, NamedGradients, NamedModel, NamedValues
from gradserve_client.recording import (
    AsyncFunction,
    Function,
    RecordingError,
    call,
    cond,
    fixed_point,
    function,
    map,
    scan,
    while_loop,
)
from gradserve_client.registered import GraphSummary, Registered
from gradserve_client.resident import Resident, ResidentTensor, Rows, Store

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "AnswerTooLarge",
    "AsyncClient",
    "AsyncFunction",
    "AsyncModel",
    "AsyncRegisteredGraph",
    "AuthenticationError",
    "Batched",
    "BoundLeaf",
    "Certificate",
    "Client",
    "ConditionError",
    "ConnectionFailed",
    "DeadlineError",
    "DeadlineRefusal",
    "Derivative",
    "Forecast",
    "Function",
    "Gradients",
    "GradserveError",
    "Graph",
    "GraphError",
    "GraphFunction",
    "GraphSummary",
    "Hessian",
    "HessianMatrix",
    "Hvp",
    "InputError",
    "Jacobian",
    "MalformedAnswer",
    "Model",
    "ModelSummary",
    "ModelValue",
    "NamedGradients",
    "NamedModel",
    "NamedValues",
    "Node",
    "NodeOffset",
    "NotFoundError",
    "OverloadError",
    "RateError",
    "RecordingError",
    "Refusal",
    "Registered",
    "RegisteredGraph",
    "Resident",
    "ResidentTensor",
    "Results",
    "Rows",
    "ServerError",
    "Store",
    "StoreFullError",
    "Tangents",
    "TransportError",
    "Values",
    "call",
    "cond",
    "fixed_point",
    "function",
    "map",
    "scan",
    "while_loop",
]
