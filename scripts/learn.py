"""Figures of how much there is to learn: sizes, splinters, imports, and the files that a request passes.

    once     private functions of at most six lines whose name stands in their file once beside the definition
    single   modules that exactly one other module imports; packages and engine/ops are exempt
    clause   docstrings whose first word opens a clause: What, Where, Of, By
    comments lines that have a comment, by room
    front    modules of the engine that `import service.app` loads, its processor seconds and resident memory
    way      files with a function that is entered between the readable socket and the answer, front and worker together

The Python client has the columns that need no server.

The server of the way runs with a module that Python loads at its start, in the front and in the workers. It notes the
file of each function that is entered while a byte of a shared file is 1.
"""

from __future__ import annotations

import ast
import io
import json
import mmap
import os
import re
import subprocess
import sys
import tempfile
import time
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("engine", "service", "schemas")
CLIENT: Final = ROOT / "clients" / "python"
SHORT: Final = 6
CLAUSE: Final = re.compile(
    r"(?:What|Who|Whoever|Whose|Whatever|Whichever|Where|That|Those|Such|Which|How(?! long| many)|When|As|Of|By|From"
    r"|Under)\b"
)
STEPS: Final = 50
_SCAN: Final = {
    "graph": {
        "opset": 2,
        "nodes": [
            {"op": "parameter"},
            {"op": "scan", "operands": [0], "attrs": {"body": 0, "carries": 1, "length": STEPS}},
            {"op": "get_output", "operands": [1], "attrs": {"index": 0}},
            {"op": "sum", "operands": [2]},
        ],
        "functions": [{"name": "step", "nodes": [{"op": "input"}, {"op": "sin", "operands": [0]}], "outputs": [1]}],
    },
    "feeds": [{"node": 0, "tensor": {"dtype": "float64", "shape": [2], "data": [0.5, 1.0]}}],
}
_RECORDER: Final = """
import json, mmap, os, sys, threading, time
with open(os.environ["LEARN_FLAG"], "r+b") as file:
    flag = mmap.mmap(file.fileno(), 1)
entered = set()
def record(frame, event, argument):
    if event == "call" and flag[0] == 1:
        entered.add(frame.f_code.co_filename)
def write():
    while flag[0] != 2:
        time.sleep(0.05)
    with open(f"{os.environ['LEARN_FLAG']}.{os.getpid()}", "w") as file:
        json.dump(sorted(entered), file)
threading.Thread(target=write, daemon=True).start()
sys.setprofile(record)
"""
_FRONT: Final = """
import sys, time
import service.app
pages = int(open("/proc/self/statm").read().split()[1])
engine = sum(name.partition(".")[0] == "engine" for name in sys.modules)
print(engine, time.process_time(), pages * 4096 / 1e6)
"""


def modules(*folders: Path) -> dict[Path, ast.Module]:
    """Return the syntax trees of the packages in these folders, without generated files."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths if "generated" not in path.parts}


def used_once(tree: ast.Module) -> Iterator[str]:
    """Yield the short private functions that are called in one place."""
    names = [node.id if isinstance(node, ast.Name) else node.attr for node in ast.walk(tree)
             if isinstance(node, ast.Name | ast.Attribute)]  # fmt: skip
    called = [
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    ]
    mentions, calls = Counter(names), Counter(called)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            private = node.name.startswith("_") and not node.name.startswith("__")
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if private and lines <= SHORT and mentions[node.name] == calls[node.name] == 1:
                yield node.name


def importers(trees: dict[Path, ast.Module], root: Path) -> Counter[Path]:
    """Count the modules that import each module."""
    known = {".".join(path.relative_to(root).with_suffix("").parts): path for path in trees}
    counts: Counter[Path] = Counter()
    for path, tree in trees.items():
        imported = set[Path]()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {known[alias.name] for alias in node.names if alias.name in known}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                imported |= {known[name] for name in names if name in known}
        counts.update(imported - {path})
    return counts


def docstrings(trees: dict[Path, ast.Module]) -> list[str]:
    """Return all docstrings."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = [ast.get_docstring(node) for tree in trees.values() for node in ast.walk(tree) if isinstance(node, kinds)]
    return [text for text in texts if text]


def comments(paths: Iterable[Path]) -> float:
    """Return the share of lines that have a comment; directives to a tool are none."""
    lines = count = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        texts = [token.string for token in tokens if token.type == tokenize.COMMENT]
        count += sum(not text.startswith(("# fmt:", "# noqa", "# type:")) for text in texts)
    return count / lines if lines else 0.0


def front() -> tuple[int, float, float]:
    """Return modules of the engine, processor seconds (best of three), and megabytes of `import service.app`."""
    lines = [subprocess.check_output([sys.executable, "-c", _FRONT], cwd=ROOT, text=True).split() for _ in range(3)]
    return int(lines[0][0]), min(float(line[1]) for line in lines), float(lines[0][2])


def way(request: Any, *options: str) -> int:
    """Return the number of files that the first request to a fresh server passes."""
    with tempfile.TemporaryDirectory() as folder:
        flag = Path(folder, "flag")
        flag.write_bytes(b"\0")
        Path(folder, "sitecustomize.py").write_text(_RECORDER, encoding="utf-8")
        with flag.open("r+b") as file, mmap.mmap(file.fileno(), 1) as byte:
            command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--confine", "off", *options]
            command += ["--state", "memory", "--cache-dir", "none", "--log-level", "error"]
            environment = {**os.environ, "LEARN_FLAG": str(flag), "PYTHONPATH": folder}
            with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                url = server.stdout.readline().split()[-1]
                with httpx.Client(base_url=url, timeout=60) as client:
                    while client.get("/health/ready").status_code != 200:
                        time.sleep(0.1)
                    byte[0] = 1
                    client.post("/v1/gradients", json=request).raise_for_status()
                    byte[0] = 2
                time.sleep(1)
                server.terminate()
        entered = {name for path in Path(folder).glob("flag.*") for name in json.loads(path.read_text("utf-8"))}
    return sum(any(Path(name).is_relative_to(ROOT / package) for package in PACKAGES) for name in entered)


def readme_request() -> Any:
    """Return the request of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"/v1/gradients [^\n]* -d '\s*(\{.*?\})\s*'", text, re.DOTALL)
    assert command is not None
    return json.loads(command[1])


def columns(root: Path, *packages: str) -> None:
    """Print the figures of packages that need no server."""
    trees = modules(*(root / package for package in packages))
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in trees)
    print(f"files {len(trees)}, lines {lines}")
    print(f"once {sum(len([*used_once(tree)]) for tree in trees.values())}")
    counts = importers(trees, root)
    operations = ROOT / "engine" / "ops"
    single = [
        path for path in trees if counts[path] == 1 and path.stem != "__init__" and operations not in path.parents
    ]
    print(f"single {len(single)}")
    texts = docstrings(trees)
    clauses = sum(bool(CLAUSE.match(text)) for text in texts)
    print(f"clause {clauses} of {len(texts)}, {clauses / len(texts):.1%}")
    rooms: dict[str, list[Path]] = {}
    for path in trees:
        rooms.setdefault("/".join(path.relative_to(root).parts[:2]) if len(packages) > 1 else packages[0], []).append(
            path
        )
    print("comments", ", ".join(f"{room} {comments(paths):.1%}" for room, paths in rooms.items() if len(paths) > 1))


def main() -> None:
    """Print the figures."""
    columns(ROOT, *PACKAGES)
    count, seconds, megabytes = front()
    print(f"front {count} modules of the engine, {seconds:.2f} s, {megabytes:.0f} MB")
    print(f"way of the README's request {way(readme_request(), '--compile', 'on')} files")
    print(f"way of the gradients of a scan {way(_SCAN, '--determinism', 'bitwise')} files")
    print("the Python client:")
    columns(CLIENT, "gradserve_client")


if __name__ == "__main__":
    main()
