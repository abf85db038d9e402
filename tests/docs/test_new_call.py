"""A new call: three files reach the routes, the OpenAPI document, the plans, the tests and the guide."""

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
    """Return a copy of the project with the new call."""
    copy = copy_tree(tmp_path_factory.mktemp("new_call"))
    drop_in(copy)
    write_document(copy)
    return copy


def drop_in(tree: Path) -> None:
    """Add the call to the copy."""
    for name, text in FILES.items():
        (tree / name).write_text(text, encoding="utf-8")


def write_document(tree: Path) -> None:
    """Write the OpenAPI document, as `make docs` does."""
    made = run(tree, "-m", "scripts.write_openapi", "service/web/pages/generated")
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def served(tree: Path) -> Any:
    """Return the answers of a server of the copy."""
    process = run(tree, "-c", SERVED)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_new_call_is_served(served: Any) -> None:
    assert served["answer"]["jacobian"][0]["tensor"]["data"] == [3.0, 0.0, 0.0, -4.0]
    assert served["misspelt"]["detail"].endswith("did you mean wrt?")
    assert served["method"]["code"] == "method_not_allowed"
    assert served["plan"]["admitted"]


def test_openapi_document_describes_new_call(served: Any) -> None:
    document = served["document"]
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


#: tests that are parametrized from the document and the definitions
CALL_TESTS = (
    "tests/service/web/pages/test_openapi.py",
    "tests/service/api/test_binary.py",
    "tests/service/api/calls/test_derivative_refusals.py",
)


def run_call_tests(tree: Path) -> subprocess.CompletedProcess[str]:
    """Run these tests on the requests of the new call."""
    return run(tree, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-k", "slopes", *CALL_TESTS)


def test_existing_tests_cover_new_call(tree: Path) -> None:
    process = run_call_tests(tree)
    assert process.returncode == 0, process.stdout[-3000:]
    for file in CALL_TESTS:
        assert f"PASSED {file}::" in process.stdout


def test_undocumented_answer_fails_tests(tree: Path) -> None:
    messages = tree / "schemas/calls/slopes.py"
    messages.write_text(MESSAGES.replace("list[JacobianBlock]", "list[NodeTensor]"), encoding="utf-8")
    write_document(tree)
    process = run_call_tests(tree)
    messages.write_text(MESSAGES, encoding="utf-8")
    write_document(tree)
    assert process.returncode == 1
    for path in ("/v1/slopes", "/v1/graphs/{graph_id}/slopes"):
        assert (
            f"FAILED tests/service/web/pages/test_openapi.py::test_every_request_example_runs[{path}]" in process.stdout
        )


def test_make_docs_adds_new_call_to_guide(tree: Path) -> None:
    before = run(tree, "-m", "scripts.build_docs", "--check")
    assert before.returncode == 1, "the check does not detect a new call"
    assert run(tree, "-m", "scripts.build_docs").returncode == 0
    assert run(tree, "-m", "scripts.build_docs", "--check").returncode == 0
    guide = (tree / "docs/guide/calls/README.md").read_text(encoding="utf-8")
    assert "| slopes of f | 1 + n | the tests of new calls |" in guide
