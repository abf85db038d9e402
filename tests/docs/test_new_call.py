"""A call dropped in as three files is in the routes, the OpenAPI document, the plans, the tests and the guide."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.copied_tree import copy_tree, run

pytestmark = pytest.mark.slow

MESSAGES = '''"""The derivative by time, of all leaves at once."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from schemas.answer import NodeTensor, Stats
from schemas.calls.jacobian import JacobianBlock
from schemas.request import ComputingRequest, Wrt
from schemas.graph import CLOSED


@with_config(CLOSED)
class SlopesRequest(ComputingRequest):
    """A graph, values for its leaves, and the nodes to differentiate with respect to."""

    wrt: NotRequired[Annotated[Wrt, Field(description="the nodes that slopes are taken by")]]


class SlopesAnswer(TypedDict):
    """Values, and a block for each output and each node of `wrt`."""

    values: list[NodeTensor]
    jacobian: list[JacobianBlock]
    stats: Stats
'''

DESCRIPTION = '''"""Slopes, as the tests of a new call drop them in."""

from __future__ import annotations

from schemas.calls.slopes import SlopesAnswer, SlopesRequest
from service.api.calls.description import ComputingDescription, Guide
from service.api.calls.description import MEAN


class SlopesCall(ComputingDescription):
    """Slopes.

    A paragraph on slopes.
    """

    name = "slopes"
    request = SlopesRequest
    answer = SlopesAnswer
    guide = Guide("slopes of f", "1 + n", "the tests of new calls")
    examples = {"of the squares by w": MEAN | {"outputs": [1]}}
'''

EXECUTION = '''"""Slopes, as the tests of a new call drop them in."""

from __future__ import annotations

from engine import Call, Jacobian
from service.api.calls.slopes import SlopesCall
from service.workers.executions.computing import CallArguments, Computing


class SlopesExecution(Computing):
    """Slopes of all outputs."""

    description = SlopesCall

    def call(self, arguments: CallArguments) -> Call:
        """The Jacobian of `outputs`."""
        return Jacobian.of_program(arguments.program, *arguments.get("wrt", "outputs"))
'''

FILES = {
    "schemas/calls/slopes.py": MESSAGES,
    "service/api/calls/slopes.py": DESCRIPTION,
    "service/workers/executions/slopes.py": EXECUTION,
}

SERVED = """
import json
import re
from fastapi.testclient import TestClient
from tests.service.application import create_app
from service.api.calls.description import MEAN, TYPED

with TestClient(create_app(), base_url="http://localhost") as client:
    post = lambda path, **more: client.post(path, **more).json()
    print(json.dumps({
        "document": client.get("/openapi.json").json(),
        "answer": post("/v1/slopes", json=MEAN | {"outputs": [1]}),
        "misspelt": post("/v1/slopes", json=MEAN | {"wtr": [0]}),
        "method": client.get("/v1/slopes").json(),
        "plan": post("/v1/plan", json=TYPED | {"call": "slopes", "outputs": [1]}),
    }))
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with three files more."""
    copy = copy_tree(tmp_path_factory.mktemp("new_call"))
    drop_in(copy)
    write_document(copy)
    return copy


def drop_in(tree: Path) -> None:
    """Put the call into the copy."""
    for name, text in FILES.items():
        (tree / name).write_text(text, encoding="utf-8")


def write_document(tree: Path) -> None:
    """What `make docs` writes of it."""
    made = run(tree, "-m", "scripts.write_openapi", "service/web/pages/generated")
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def found(tree: Path) -> Any:
    """What a server of the copy answers."""
    served = run(tree, "-c", SERVED)
    assert served.returncode == 0, served.stderr
    return json.loads(served.stdout)


def test_the_service_knows_it(found: Any) -> None:
    assert found["answer"]["jacobian"][0]["tensor"]["data"] == [3.0, 0.0, 0.0, -4.0]
    assert found["misspelt"]["detail"].endswith("did you mean wrt?")
    assert found["method"]["code"] == "method_not_allowed"
    assert found["plan"]["admitted"]


def test_the_document_has_it(found: Any) -> None:
    document = found["document"]
    post = document["paths"]["/v1/slopes"]["post"]
    assert (post["operationId"], post["summary"], post["description"]) == (
        "slopes",
        "Slopes.",
        "A paragraph on slopes.",
    )
    assert {"SlopesRequest", "SlopesAnswer"} <= document["components"]["schemas"].keys()
    assert "slopes" in document["components"]["schemas"]["PlannedCall"]["enum"]
    shown = post["responses"]["200"]["content"]["application/json"]["examples"]
    assert shown["of the squares by w"]["value"]["jacobian"][0]["of"] == 1
    assert {"404"}.isdisjoint(post["responses"])
    assert {"413", "422", "503", "504"} <= post["responses"].keys()


#: the tests that are made from the document and from the definitions
ITS_TESTS = (
    "tests/service/web/pages/test_openapi.py",
    "tests/service/api/test_binary.py",
    "tests/service/api/calls/test_derivative_refusals.py",
)


def run_its_tests(tree: Path) -> subprocess.CompletedProcess[str]:
    """These, on the requests of this call."""
    return run(tree, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", "slopes", *ITS_TESTS)


def test_the_tests_cover_it(tree: Path) -> None:
    ran = run_its_tests(tree)
    assert ran.returncode == 0, ran.stdout[-3000:]
    for file in ITS_TESTS:
        assert f"PASSED {file}::" in ran.stdout


def test_an_answer_that_is_not_as_documented_turns_them_red(tree: Path) -> None:
    messages = tree / "schemas/calls/slopes.py"
    messages.write_text(MESSAGES.replace("list[JacobianBlock]", "list[NodeTensor]"), encoding="utf-8")
    write_document(tree)
    ran = run_its_tests(tree)
    messages.write_text(MESSAGES, encoding="utf-8")
    write_document(tree)
    assert ran.returncode == 1
    for path in ("/v1/slopes", "/v1/graphs/{graph_id}/slopes"):
        assert f"FAILED tests/service/web/pages/test_openapi.py::test_every_request_example_runs[{path}]" in ran.stdout


def test_the_guide_has_it_after_make_docs(tree: Path) -> None:
    before = run(tree, "-m", "scripts.build_docs", "--check")
    assert before.returncode == 1, "the check does not notice a new call"
    assert run(tree, "-m", "scripts.build_docs").returncode == 0
    assert run(tree, "-m", "scripts.build_docs", "--check").returncode == 0
    guide = (tree / "docs/guide/calls/README.md").read_text(encoding="utf-8")
    assert "| slopes of f | 1 + n | the tests of new calls |" in guide
