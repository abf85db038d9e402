"""Operations on models in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from schemas.resources import ModelList, NamedModel, PutModelRequest
from scripts.openapi import examples
from scripts.openapi.examples import by_head, refusal_of
from scripts.openapi.operation import Operation
from scripts.openapi.tensor_operations import (
    IDEMPOTENCY_KEY,
    KEEPING,
    PAGING,
    STALE,
    TIMEOUT_MS,
    conditions,
    listing_failures,
    name_of,
)
from service.api.calls.description import Json
from service.store.changes import Condition
from service.store.tables import ModelTable, Quota, StoredModel, no_graph, no_model, require_name, table_full
from service.web.pages.error_pages import Failure
from service.workers.task import PUT_MODEL

#: name of the model in examples
_SUBJECT: Final = "mean_of_squares"
_ABSENT: Final = "nothing"
_PATH: Final = "/v1/models/"
_NAME: Final = name_of("a model", _SUBJECT)
_CONDITIONS: Final = conditions("model")
_UNKNOWN: Final = by_head(no_model(_ABSENT), {"path": _PATH + _ABSENT})
_NO_NAME: Final = by_head(refusal_of(lambda: require_name("-w", "the name of a model")), {"path": _PATH + "-w"})
_PRECONDITION: Final = by_head(
    refusal_of(lambda: Condition(match=[STALE]).require(_ABSENT, None, "model")),
    {"path": _PATH + _ABSENT, "headers": {"If-Match": f'"{STALE}"'}},
)
_FULL: Final = by_head(table_full("the server keeps 1000 models", "at most 1000 models"))
_KEEPING: Final = (_FULL, *KEEPING[1:])


def in_use_failure() -> Failure:
    """Return the error for deleting a graph that a model uses."""
    table, graph_id = ModelTable(Quota(1, 1)), "0" * 64
    table.load(("", _SUBJECT), StoredModel(graph_id, STALE, b""))
    return by_head(refusal_of(lambda: table.require_unused(("", graph_id))))


def model_operations(graph_id: str) -> Iterator[tuple[str, Operation]]:
    """Yield all operations on models, by id. `graph_id` is that of the shared graph."""
    model = NamedModel.__name__
    leaf = {"name": "w", "node": 0, "dtype": "float64", "shape": [-1]}
    body: Json = {"graph_id": graph_id, "inputs": [leaf], "outputs": [{"name": "mean", "node": 2}]}
    yield (
        PUT_MODEL,
        Operation(
            model,
            (*_putting_failures(body), replace(_NO_NAME, body=body), replace(_PRECONDITION, body=body), *_KEEPING),
            PutModelRequest.__name__,
            {"mean of squares of any number of elements": body},
            (_NAME, TIMEOUT_MS, *_CONDITIONS, IDEMPOTENCY_KEY),
            PUT_MODEL,
            registered=True,
            takes_binary=False,
            subject=_SUBJECT,
            statuses={"201": "A new model was stored", "200": "An existing model was replaced"},
            headers=("ETag",),
        ),
    )
    known = (*examples.READING, examples.UNSEEN, _UNKNOWN, _NO_NAME)
    yield (
        "getModel",
        Operation(
            model,
            known,
            parameters=(_NAME, TIMEOUT_MS, *_CONDITIONS),
            headers=("ETag",),
            bodiless={"304": "The client has the current version"},
        ),
    )
    yield (
        "deleteModel",
        Operation(
            model,
            (*known, examples.LATE, _PRECONDITION, *_KEEPING),
            parameters=(_NAME, TIMEOUT_MS, *_CONDITIONS, IDEMPOTENCY_KEY),
        ),
    )
    yield "listModels", Operation(ModelList.__name__, listing_failures("/v1/models"), parameters=PAGING)


def _putting_failures(body: Json) -> Iterator[Failure]:
    """Yield every error that the body of a model can cause."""
    (leaf,), (output,) = body["inputs"], body["outputs"]

    def of_leaf(**changed: object) -> Json:
        return body | {"inputs": [leaf | changed]}

    yield from examples.answered_in_json()
    unknown_id = "0" * 64
    yield Failure("not_found", body | {"graph_id": unknown_id}, refusal=no_graph(unknown_id, "/graph_id"))
    yield Failure("bad_reference", body | {"outputs": [output | {"node": 7}]})
    yield Failure("unexpected_feed", body | {"inputs": [leaf, leaf | {"name": "x", "node": 1}]})
    yield Failure("missing_feed", body | {"inputs": []})
    yield Failure("bad_tensor", of_leaf(dtype="float31"))
    yield Failure("over_budget", of_leaf(shape=[1] * 40))
