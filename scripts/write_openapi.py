"""Generate the OpenAPI documents, and write them into a folder as a server serves them."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import Final

from engine import DTYPES, Registry, registry
from engine.ir.kinds import ATTRIBUTE_KINDS
from schemas import Vocabulary, components
from schemas.document import TENSOR
from schemas.resources import (
    GraphList,
    ModelList,
    NamedModel,
    PutModelRequest,
    RegisteredGraph,
    RegisterGraphRequest,
    ResidentTensor,
    TensorList,
    TensorSummary,
    without_graph,
)
from scripts.openapi.document import document
from service.api.calls import calls, computing_calls
from service.api.calls.description import Json
from service.core.settings import Settings
from service.web.graph_routes import graph_router
from service.web.model_routes import model_router
from service.web.pages.openapi import documents
from service.web.routes import health_router, router
from service.web.routing import scope_of
from service.web.tensor_routes import tensor_router
from service.workers.worker import Worker

#: default settings, except those that depend on the machine, so that the document is the same everywhere
SHOWN: Final = Settings(device="cpu", compile="off", workers=2, max_bytes=4 << 30, max_flops=2 * 10**12)


def main(arguments: list[str] | None = None) -> None:
    """Write the documents into a folder, each under the name that a server gives it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="made where it is missing")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in documents(build_document()).items():
        (folder / name).write_bytes(content)


def build_document() -> Json:
    """Build the document in OpenAPI 3.1. Its examples are answers of a worker with the limits of `SHOWN`."""
    worker = Worker(SHOWN)
    routes = [
        route for each in (router, health_router, graph_router, tensor_router, model_router) for route in each.routes
    ]
    return document(routes, components(_vocabulary(registry()), _messages()), worker, scope_of)


def _vocabulary(known: Registry) -> Vocabulary:
    """Return the registry's vocabulary as plain data."""
    docs: dict[str, list[str]] = {name: [] for name in known.attributes}
    for op in known.ops.values():
        for name, attr in op.attrs.items():
            docs[name].append(f"{op.name}: {attr.doc}")
    return Vocabulary(
        ops=tuple(known.ops),
        attributes={name: kind.schema(TENSOR) for name, kind in known.attributes.items()},
        docs={name: "; ".join(lines) for name, lines in docs.items()},
        kinds=tuple(dict.fromkeys(kind.spelling for kind in ATTRIBUTE_KINDS.values())),
        dtypes=DTYPES,
        calls=tuple(computing_calls()),
    )


def _messages() -> list[type]:
    """Return the requests and answers of calls, and the descriptions of stored resources."""
    call_messages = [(call.request, without_graph(call.request), call.answer) for call in calls().values()]
    resources = (RegisterGraphRequest, RegisteredGraph, GraphList, ResidentTensor, TensorSummary, TensorList)
    models = (PutModelRequest, NamedModel, ModelList)
    return [*chain.from_iterable(call_messages), *resources, *models]


if __name__ == "__main__":
    main()
