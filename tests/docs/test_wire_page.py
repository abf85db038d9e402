"""docs/wire.md and the service agree on fields and codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest

from engine import DTYPES
from examples.server import running_server
from service.core.errors import KINDS
from tests.conftest import Client
from tests.docs.marked import blocks, codes_by_status, text_of
from tests.service.described import operations, refusals

PAGE = text_of("docs/wire.md")
# A row of the table of calls: the call, what it takes, what it answers.
CALL = re.compile(r"^\| `/v1/(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
# A graph, its canonical text and its id.
VECTOR = re.compile(r"<!-- test: vector -->\n```json\n(.*?)```\n\n```text\n(.*?)\n(\w{64})\n```", re.DOTALL)


@pytest.fixture(scope="module")
def document() -> Iterator[dict[str, Any]]:
    with running_server("--device", "cpu") as url:
        yield httpx.get(url + "/openapi.json").json()


def test_the_codes_have_the_status_of_their_row() -> None:
    described = codes_by_status("docs/wire.md")
    assert described
    assert not {code: statuses for code, statuses in described.items() if KINDS[code].status not in statuses}


@pytest.mark.slow
def test_every_code_that_a_call_documents_is_on_the_page(document: dict[str, Any]) -> None:
    codes = {code for *_, operation in operations(document) for _, code, _ in refusals(document, operation)}
    assert len(codes) > 30
    assert not [code for code in codes if f"`{code}`" not in PAGE]


@pytest.mark.slow
def test_every_field_of_every_call_is_on_the_page(document: dict[str, Any]) -> None:
    """With those of what the messages hold: limits, stats, errors of a certificate, blocks of a Jacobian."""
    messages = {name: m["properties"] for name, m in document["components"]["schemas"].items() if "properties" in m}
    elsewhere = {"Attrs", "AttributeInfo", "OpInfo", "Catalogue", "OpAlias", "Health"}  # docs/ops.md, the catalogue
    assert len(messages.keys() - elsewhere) > 30
    fields = {field for name, properties in messages.items() if name not in elsewhere for field in properties}
    assert not [field for field in fields if not re.search(rf"\b{field}\b", PAGE)]


def test_the_page_lists_the_dtypes() -> None:
    listed = re.search(r"The dtypes\s+are (.*?);", PAGE, re.DOTALL)
    assert listed
    assert tuple(re.findall(r"`(\w+)`", listed[1])) == DTYPES


@pytest.mark.slow
def test_every_path_is_on_the_page(document: dict[str, Any]) -> None:
    assert not [path for path in document["paths"] if path not in PAGE]


@pytest.mark.slow
@pytest.mark.parametrize(("call", "roots"), [(call, roots) for call, *roots in CALL.findall(PAGE)])
def test_the_row_of_a_call_names_its_own_fields(call: str, roots: list[str], document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    common = {"graph", "feeds", "encoding", "diagnose", "outputs", "store", "memory_budget", "precision"}
    takes = schemas[f"{call.capitalize()}Request"]["properties"].keys() - common
    assert not [field for field in takes if f"`{field}`" not in roots[0]]
    if f"{call.capitalize()}Answer" in schemas and "](#" not in roots[1]:
        gives = schemas[f"{call.capitalize()}Answer"]["properties"].keys() - {"stats", "stored"}
        assert not [field for field in gives if f"`{field}`" not in roots[1]]


@pytest.mark.slow
def test_the_ids_of_the_page(client: Client) -> None:
    """Each graph has the text that is shown, the text has the hash, and the service answers with it."""
    found = VECTOR.findall(PAGE)
    assert len(found) == len(blocks("docs/wire.md", "vector")) == 3
    for shown, text, digest in found:
        assert sha256(text.encode()).hexdigest() == digest
        graph = json.loads(shown)
        tensor = {"dtype": "float64", "shape": [2], "data": [1, 2]}
        leaves = [i for i, node in enumerate(graph["nodes"]) if node["op"] in {"input", "parameter"}]
        feeds = [{"node": i, "tensor": tensor} for i in leaves]
        answer = client.post("/v1/forward", json={"graph": graph, "feeds": feeds}).json()
        assert answer["stats"]["graph_id"] == digest


@pytest.mark.slow
def test_the_functions_of_the_page_are_those_of_its_vector(client: Client) -> None:
    """What it says of the graph is so."""
    (shown,) = blocks("docs/wire.md", "functions")
    assert json.loads(VECTOR.findall(PAGE)[2][0]) == json.loads(shown)
    feeds = [{"node": i, "tensor": {"dtype": "float64", "shape": [], "data": [x]}} for i, x in enumerate((1, 16))]
    answer = client.post("/v1/gradients", json={"graph": json.loads(shown), "feeds": feeds}).json()
    assert answer["values"][0]["tensor"]["data"] == [15]
    assert answer["gradients"][0]["tensor"]["data"] == [-26]
