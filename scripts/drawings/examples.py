"""Graphs that the programs of examples/ send, the first of each."""

from __future__ import annotations

import ast
import importlib
import json
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx

import gradserve_client as gs
from scripts.drawings.drawn import ROOT, Drawn

FOLDER: Final = "drawings/examples"
PROGRAMS: Final = ROOT / "examples"
_SAFETENSORS: Final = "application/vnd.safetensors"


class _Sent(BaseException):
    """Raised when a program sends a graph. It is a BaseException, so that no program catches it."""


class Listener(httpx.BaseTransport):
    """Transport in place of a server, which ends the program when it sends its first graph."""

    graph: dict[str, Any] | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Keep the graph of the request, and end the program."""
        message = _message(request)
        if "graph" not in message:
            return httpx.Response(404, json={"code": "not_found", "detail": "nobody is here"})
        self.graph = message["graph"]
        raise _Sent


def _message(request: httpx.Request) -> dict[str, Any]:
    """Return the JSON of a request, which may be in the header of a safetensors file."""
    content = request.read()
    if not content:
        return {}
    if request.headers["content-type"] == _SAFETENSORS:
        length = int.from_bytes(content[:8], "little")
        content = json.loads(content[8 : 8 + length])["__metadata__"]["request"]
    message: dict[str, Any] = json.loads(content)
    return message


@cache
def examples() -> Mapping[str, Drawn]:
    """Return the drawings by the names of the programs."""
    graphs = ((path, sent(path)) for path in programs())
    return {
        path.stem: Drawn(f"{FOLDER}/{path.stem}", f"the graph of examples/{path.name}", graph)
        for path, graph in graphs
        if graph is not None
    }


def programs() -> list[Path]:
    """Return the programs that `run` starts. The others are not examples, or need a machine of their own."""
    return [path for path in sorted(PROGRAMS.glob("*.py")) if "    run(work" in path.read_text(encoding="utf-8")]


def summary(path: Path) -> str:
    """Return the first sentence of a program's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def sent(path: Path) -> dict[str, Any] | None:
    """Return the first graph that a program sends, or None."""
    listener = Listener()

    def run(work: Callable[..., None], *_: Any, **sizes: Any) -> None:
        with gs.Client("http://127.0.0.1", transport=listener) as client:
            work(client, **sizes)

    with _neighbours():
        module = importlib.import_module("run")
        original, module.run = module.run, run  # type: ignore[attr-defined]
        try:
            runpy.run_path(str(path), run_name="__main__")
        except _Sent:
            pass
        finally:
            module.run = original  # type: ignore[attr-defined]
    return listener.graph


@contextmanager
def _neighbours() -> Iterator[None]:
    """Put the folder of the programs on the path, so that they can import the modules beside them."""
    sys.path.insert(0, str(PROGRAMS))
    try:
        yield
    finally:
        sys.path.remove(str(PROGRAMS))
