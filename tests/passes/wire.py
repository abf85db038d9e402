"""Questions that the tests, the examples and the documentation ask in JSON."""

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
#: a block of a page that a test runs, and what the test does with it
BLOCK = re.compile(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", re.DOTALL)
#: one sine after the other, 5,000 times: as the benchmarks' chain, but slow
LENGTHY = "test_a_chain_of_5000_nodes"


def asked(name: str, call: str, body: Mapping[str, Any]) -> Question:
    """The question of a body, with the defaults of its call."""
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
    """A node of the wire in the engine's terms; an empty list stands for the default."""
    stated = {key: value for key, value in node.get("attrs", {}).items() if value != []}
    attrs = {key: array(value) if isinstance(value, dict) else value for key, value in stated.items()}
    return Statement(registry().get(node["op"]), tuple(node.get("operands", ())), attrs)


# ---------------------------------------------------------------- reference cases


def reference() -> Iterator[Question]:
    """Each case, once for each of its outputs; where there is no derivative, its value."""
    for case in CASES:
        g = Graph(None)  # type: ignore[arg-type] # written into, and never asked
        leaves, outputs = case.written(g, case.op)
        for node, value in zip(outputs, case.values(), strict=True):
            if value.dtype.kind != "f":
                yield asked(str(case), "forward", g.request([node], outputs=[node]))
                continue
            wrt = [i for i in leaves if g.feeds[i].dtype.kind == "f"] or [node]
            stated = {"of": node, "wrt": wrt, "cotangent": tensor(seed(value))}
            yield asked(str(case), "gradients", g.request([node, *wrt], **stated))


# ---------------------------------------------------------------- derivatives of derivatives


class Listener(Client):
    """A client that remembers what it asked."""

    def __init__(self) -> None:
        super().__init__(create_app(Settings(device="cpu", timeout_ms=300_000)))
        self.heard: list[tuple[str, Any]] = []

    def post(self, path: str, **options: Any) -> Any:
        """POST, and note the call and its body."""
        self.heard.append((path.removeprefix("/v1/"), options["json"]))
        return super().post(path, **options)


def higher_order() -> Iterator[Question]:
    """What tests/reference/test_derivatives_of_derivatives.py asks."""
    client = Listener()
    for name, test in vars(derivatives).items():
        if name.startswith("test_") and name != LENGTHY:
            marks = getattr(test, "pytestmark", [])
            for arguments in [{mark.args[0]: value} for mark in marks for value in mark.args[1]] or [{}]:
                client.heard.clear()
                test(client=client, **arguments)
                yield from (asked(f"{name} {arguments}", *heard) for heard in client.heard)
    client.close()


# ---------------------------------------------------------------- examples, documentation


def examples() -> Iterator[Question]:
    """The losses of the examples as their training starts, on a few images and points."""
    rng = np.random.default_rng(0)
    digits, poisson = example("digits").Classifier(rng), example("poisson").Solution(rng)
    points = np.linspace(0, 1, 16)[:, None]
    images = {digits.images: rng.random((16, 64)), digits.labels: rng.integers(0, 10, 16)}
    yield asked("digits", "gradients", body(digits, images))
    yield asked("poisson", "gradients", body(poisson, {poisson.x: points, poisson.right_side: -np.sin(points)}))


def example(module: str) -> Any:
    """A program of examples/, which finds its neighbours as it does when it is started."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.pop(0)


def body(model: Any, data: Mapping[Node, Array]) -> dict[str, Any]:
    """What a model of the examples asks, in float64."""
    feeds = [{"node": leaf.id, "tensor": tensor(float64(a))} for leaf, a in {**data, **model.parameters}.items()]
    return {"graph": to_wire(model.graph), "feeds": feeds, "of": model.loss.id}


def _whole(words: list[str]) -> dict[str, Any] | None:
    """The request of a command that sends a graph, and all of its tensors with it."""
    sent = json.loads(words[words.index("-d") + 1]) if "-d" in words else {}
    return sent if {"graph", "feeds"} <= sent.keys() and all("tensor" in feed for feed in sent["feeds"]) else None


def documentation() -> Iterator[Question]:
    """The requests of the README, the guide and the contract that are answered with values or gradients.

    Not those of graphs with functions: of these, passes see a node alone.
    """
    for page in ("README.md", "docs/wire.md", *sorted(ROOT.glob("docs/guide/*.md"))):
        blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
        for (kind, code), (outcome, _) in pairwise([*blocks, ("", "")]):
            name = f"{(ROOT / page).name}: {code[:60]}"
            if '"functions"' in code:
                continue
            if kind in {"gradients", "forward"} and outcome == "answer":
                yield asked(name, kind, json.loads(code))
            elif kind in {"curl", "request"} and (sent := _whole(shlex.split(code))) is not None:
                yield asked(name, "gradients", sent)
            elif kind == "graph":
                feeds = [{"node": i, "tensor": tensor([1.0, 2.0, 3.0])} for i in range(2)]
                yield asked(name, "gradients", {"graph": json.loads(code), "feeds": feeds})
