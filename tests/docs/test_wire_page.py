"""docs/wire.md against the service: fields, codes, dtypes, paths and ids."""

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
# A row of the table of calls: call, request fields, answer fields.
CALL = re.compile(r"^\| `/v1/(\w+)` \| (.*?) \| (.*?) \|$", re.MULTILINE)
# A graph, its canonical text and its id.
VECTOR = re.compile(r"<!-- test: vector -->\n```json\n(.*?)```\n\n```text\n(.*?)\n(\w{64})\n```", re.DOTALL)


@pytest.fixture(scope="module")
def document() -> Iterator[dict[str, Any]]:
    with running_server("--device", "cpu") as url:
        yield httpx.get(url + "/openapi.json").json()


def test_error_table_has_status_of_each_code() -> None:
    described = codes_by_status("docs/wire.md")
    assert described
    assert not {code: statuses for code, statuses in described.items() if KINDS[code].status not in statuses}


@pytest.mark.slow
def test_page_lists_documented_error_codes(document: dict[str, Any]) -> None:
    codes = {code for *_, operation in operations(document) for _, code, _ in refusals(document, operation)}
    assert len(codes) > 30
    assert not [code for code in codes if f"`{code}`" not in PAGE]


@pytest.mark.slow
def test_page_lists_every_field(document: dict[str, Any]) -> None:
    """Include nested messages: limits, stats, errors of a certificate, blocks of a Jacobian."""
    messages = {name: m["properties"] for name, m in document["components"]["schemas"].items() if "properties" in m}
    documented_elsewhere = {
        "Attrs",
        "AttributeInfo",
        "OpInfo",
        "Catalogue",
        "OpAlias",
        "Health",
    }  # docs/ops.md, the catalogue
    assert len(messages.keys() - documented_elsewhere) > 30
    fields = {
        field for name, properties in messages.items() if name not in documented_elsewhere for field in properties
    }
    assert not [field for field in fields if not re.search(rf"\b{field}\b", PAGE)]


def test_page_lists_dtypes() -> None:
    listed = re.search(r"The dtypes\s+are (.*?);", PAGE, re.DOTALL)
    assert listed
    assert tuple(re.findall(r"`(\w+)`", listed[1])) == DTYPES


@pytest.mark.slow
def test_page_lists_every_path(document: dict[str, Any]) -> None:
    assert not [path for path in document["paths"] if path not in PAGE]


@pytest.mark.slow
@pytest.mark.parametrize(("call", "roots"), [(call, roots) for call, *roots in CALL.findall(PAGE)])
def test_call_row_names_fields(call: str, roots: list[str], document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    common = {"graph", "feeds", "encoding", "diagnose", "outputs", "store", "memory_budget", "precision"}
    takes = schemas[f"{call.capitalize()}Request"]["properties"].keys() - common
    assert not [field for field in takes if f"`{field}`" not in roots[0]]
    if f"{call.capitalize()}Answer" in schemas and "](#" not in roots[1]:
        gives = schemas[f"{call.capitalize()}Answer"]["properties"].keys() - {"stats", "stored"}
        assert not [field for field in gives if f"`{field}`" not in roots[1]]


@pytest.mark.slow
def test_page_graph_ids_match(client: Client) -> None:
    """Check that the shown text has the shown hash, and that the service returns it."""
    vectors = VECTOR.findall(PAGE)
    assert len(vectors) == len(blocks("docs/wire.md", "vector")) == 3
    for shown, text, digest in vectors:
        assert sha256(text.encode()).hexdigest() == digest
        graph = json.loads(shown)
        tensor = {"dtype": "float64", "shape": [2], "data": [1, 2]}
        leaves = [i for i, node in enumerate(graph["nodes"]) if node["op"] in {"input", "parameter"}]
        feeds = [{"node": i, "tensor": tensor} for i in leaves]
        answer = client.post("/v1/forward", json={"graph": graph, "feeds": feeds}).json()
        assert answer["stats"]["graph_id"] == digest


@pytest.mark.slow
def test_function_example_matches_vector(client: Client) -> None:
    """Check the value and gradient that the page gives for the graph."""
    (shown,) = blocks("docs/wire.md", "functions")
    assert json.loads(VECTOR.findall(PAGE)[2][0]) == json.loads(shown)
    feeds = [{"node": i, "tensor": {"dtype": "float64", "shape": [], "data": [x]}} for i, x in enumerate((1, 16))]
    answer = client.post("/v1/gradients", json={"graph": json.loads(shown), "feeds": feeds}).json()
    assert answer["values"][0]["tensor"]["data"] == [15]
    assert answer["gradients"][0]["tensor"]["data"] == [-26]
