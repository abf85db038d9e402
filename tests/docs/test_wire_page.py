"""docs/wire.md and the service agree on fields and codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from examples.server import running_server
from service.errors import KINDS
from tests.docs.marked import codes_by_status, text_of

PAGE = text_of("docs/wire.md")


@pytest.fixture(scope="module")
def document() -> Iterator[dict[str, Any]]:
    with running_server("--device", "cpu") as url:
        yield httpx.get(url + "/openapi.json").json()


def test_the_codes_have_the_status_of_their_row() -> None:
    described = codes_by_status("docs/wire.md")
    assert described
    assert not {code: statuses for code, statuses in described.items() if KINDS[code].status not in statuses}


def test_every_code_that_a_call_documents_is_on_the_page(document: dict[str, Any]) -> None:
    examples = [
        set(content["examples"])
        for path in document["paths"].values()
        for operation in path.values()
        for response in operation["responses"].values()
        for media, content in response["content"].items()
        if media == "application/problem+json"
    ]
    assert examples
    assert not [code for code in set().union(*examples) if f"`{code}`" not in PAGE]


def test_every_field_of_the_gradients_call_is_on_the_page(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    fields = {*schemas["GradientsRequest"]["properties"], *schemas["GradientsAnswer"]["properties"]}
    assert not [field for field in fields if not re.search(rf"\b{field}\b", PAGE)]


def test_every_path_is_on_the_page(document: dict[str, Any]) -> None:

    assert not [path for path in document["paths"] if path not in PAGE]
