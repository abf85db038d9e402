"""The graphs that the programs of examples/ send: of each the first."""

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
    """A graph is on its way: no program catches this."""


class Listener(httpx.BaseTransport):
    """In place of a server: ends the program with the first graph that it sends."""

    graph: dict[str, Any] | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Keep the graph of the request."""
        said = _message(request)
        if "graph" not in said:
            return httpx.Response(404, json={"code": "not_found", "detail": "nobody is here"})
        self.graph = said["graph"]
        raise _Sent


def _message(request: httpx.Request) -> dict[str, Any]:
    """The JSON of a request, which may stand in the head of a file of safetensors."""
    content = request.read()
    if not content:
        return {}
    if request.headers["content-type"] == _SAFETENSORS:
        length = int.from_bytes(content[:8], "little")
        content = json.loads(content[8 : 8 + length])["__metadata__"]["request"]
    found: dict[str, Any] = json.loads(content)
    return found


@cache
def examples() -> Mapping[str, Drawn]:
    """By the name of the program."""
    found = ((path, sent(path)) for path in programs())
    return {
        path.stem: Drawn(f"{FOLDER}/{path.stem}", f"the graph of examples/{path.name}", graph)
        for path, graph in found
        if graph is not None
    }


def programs() -> list[Path]:
    """The programs that are started by `run`, as the others are no examples or need a machine of their own."""
    return [path for path in sorted(PROGRAMS.glob("*.py")) if "    run(work" in path.read_text(encoding="utf-8")]


def summary(path: Path) -> str:
    """The first sentence of a program's docstring."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def sent(path: Path) -> dict[str, Any] | None:
    """The first graph that a program sends; None where it sends none."""
    listener = Listener()

    def run(work: Callable[..., None], *_: Any, **sizes: Any) -> None:
        with gs.Client("http://127.0.0.1", transport=listener) as client:
            work(client, **sizes)

    with _neighbours():
        module = importlib.import_module("run")
        before, module.run = module.run, run  # type: ignore[attr-defined]
        try:
            runpy.run_path(str(path), run_name="__main__")
        except _Sent:
            pass
        finally:
            module.run = before  # type: ignore[attr-defined]
    return listener.graph


@contextmanager
def _neighbours() -> Iterator[None]:
    """Programs find the modules beside them as they do when they are started."""
    sys.path.insert(0, str(PROGRAMS))
    try:
        yield
    finally:
        sys.path.remove(str(PROGRAMS))
