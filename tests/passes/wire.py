"""Questions from the JSON requests of the tests, the examples and the documentation."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from engine import OPSET, Program, Statement, registry
from gradserve_client import Node
from gradserve_client.requests import to_wire
from service.core.settings import Settings
from tests.conftest import Client
from tests.passes.questions import Array, Question, ask, float64
from tests.reference import test_derivatives_of_derivatives as derivatives
from tests.reference.agreement import seed
from tests.reference.client import Graph, array, tensor
from tests.reference.families import ALL as CASES
from tests.service.application import create_app

ROOT = Path(__file__).parents[2]
#: a block of a page that a test runs, and how the test uses it
BLOCK = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)
#: a chain of 5,000 sines: like the benchmarks' chain, but slow
SLOW_TEST = "test_a_chain_of_5000_nodes"


def question_of(name: str, call: str, body: Mapping[str, Any]) -> Question:
    """The question of a request body, with the defaults of its call."""
    program = Program(
        registry(), [statement(node) for node in body["graph"]["nodes"]], opset=body["graph"].get("opset", OPSET)
    )
    feeds = {feed["node"]: array(feed["tensor"]) for feed in body.get("feeds", ())}
    last = len(program.statements) - 1
    if call == "forward":
        return ask(name, program, feeds, body.get("outputs") or [last])
    cotangent = array(body["cotangent"]) if "cotangent" in body else None
    of, wrt = body.get("of", last), body.get("wrt") or program.parameters
    return ask(name, program, feeds, body.get("outputs", ()), of, wrt, cotangent)


def statement(node: Mapping[str, Any]) -> Statement:
    """A wire node as an engine statement; an empty list stands for the default."""
    given = {key: value for key, value in node.get("attrs", {}).items() if value != []}
    attrs = {key: array(value) if isinstance(value, dict) else value for key, value in given.items()}
    return Statement(registry().get(node["op"]), tuple(node.get("operands", ())), attrs)


# ---------------------------------------------------------------- reference cases


def reference() -> Iterator[Question]:
    """Each case, once for each of its outputs: the gradients, or the value if there is no derivative."""
    for case in CASES:
        g = Graph(None)  # type: ignore[arg-type] # only for writing graphs
        leaves, outputs = case.written(g, case.op)
        for node, value in zip(outputs, case.values(), strict=True):
            if value.dtype.kind != "f":
                yield question_of(str(case), "forward", g.request([node], outputs=[node]))
                continue
            wrt = [i for i in leaves if g.feeds[i].dtype.kind == "f"] or [node]
            fields = {"of": node, "wrt": wrt, "cotangent": tensor(seed(value))}
            yield question_of(str(case), "gradients", g.request([node, *wrt], **fields))


# ---------------------------------------------------------------- derivatives of derivatives


class Listener(Client):
    """A client that records its requests."""

    def __init__(self) -> None:
        super().__init__(create_app(Settings(device="cpu", timeout_ms=300_000)))
        self.requests: list[tuple[str, Any]] = []

    def post(self, path: str, **options: Any) -> Any:
        """Send a POST request, and record the call and its body."""
        self.requests.append((path.removeprefix("/v1/"), options["json"]))
        return super().post(path, **options)


def higher_order() -> Iterator[Question]:
    """The requests of tests/reference/test_derivatives_of_derivatives.py."""
    client = Listener()
    for name, test in vars(derivatives).items():
        if name.startswith("test_") and name != SLOW_TEST:
            marks = getattr(test, "pytestmark", [])
            for arguments in [{mark.args[0]: value} for mark in marks for value in mark.args[1]] or [{}]:
                client.requests.clear()
                test(client=client, **arguments)
                yield from (question_of(f"{name} {arguments}", *request) for request in client.requests)
    client.close()


# ---------------------------------------------------------------- examples, documentation


def examples() -> Iterator[Question]:
    """The initial losses of the examples, on a few images and points."""
    rng = np.random.default_rng(0)
    digits, poisson = example("digits").Classifier(rng), example("poisson").Solution(rng)
    points = np.linspace(0, 1, 16)[:, None]
    images = {digits.images: rng.random((16, 64)), digits.labels: rng.integers(0, 10, 16)}
    yield question_of("digits", "gradients", body(digits, images))
    yield question_of("poisson", "gradients", body(poisson, {poisson.x: points, poisson.right_side: -np.sin(points)}))


def example(module: str) -> Any:
    """Import a program of examples/, with its folder on the path."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.pop(0)


def body(model: Any, data: Mapping[Node, Array]) -> dict[str, Any]:
    """The request body of an example's model, in float64."""
    feeds = [{"node": leaf.id, "tensor": tensor(float64(a))} for leaf, a in {**data, **model.parameters}.items()]
    return {"graph": to_wire(model.graph), "feeds": feeds, "of": model.loss.id}


def _complete_request(words: list[str]) -> dict[str, Any] | None:
    """The request of a command that sends a graph with all of its tensors, or None."""
    sent = json.loads(words[words.index("-d") + 1]) if "-d" in words else {}
    return sent if {"graph", "feeds"} <= sent.keys() and all("tensor" in feed for feed in sent["feeds"]) else None


def documentation() -> Iterator[Question]:
    """The requests of the README, the guide and the wire contract that are answered with values or gradients.

    Graphs with functions are excluded, because passes see a function as a single node.
    """
    for page in ("README.md", "docs/wire.md", *sorted(ROOT.glob("docs/guide/*.md"))):
        blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
        for (kind, code), (outcome, _) in pairwise([*blocks, ("", "")]):
            name = f"{(ROOT / page).name}: {code[:60]}"
            if '"functions"' in code:
                continue
            if kind in {"gradients", "forward"} and outcome == "answer":
                yield question_of(name, kind, json.loads(code))
            elif kind in {"curl", "request"} and (sent := _complete_request(shlex.split(code))) is not None:
                yield question_of(name, "gradients", sent)
            elif kind == "graph":
                feeds = [{"node": i, "tensor": tensor([1.0, 2.0, 3.0])} for i in range(2)]
                yield question_of(name, "gradients", {"graph": json.loads(code), "feeds": feeds})
