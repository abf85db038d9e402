"""What our clients cost: lines, dependencies, the size of the package, and the time of a small call beside curl.

`python -m benchmarks.clients` writes the table of clients/README.md. Packages are those of `make clients-package`.

A call is the gradient of sum(tanh(x · w)) of three elements by a registered graph, on one connection. Each client makes
it in its conformance program, a case with many calls, less a case with one: so the time has in it what the program
does to read a call and to write its result. The sides take turns in bursts.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final
from urllib.request import Request, urlopen

from benchmarks.turns import PAUSE, median_of_ratios
from clients.conformance.bits import to_json
from clients.conformance.languages import CLIENTS, LANGUAGES
from clients.conformance.programs import Program, build
from clients.conformance.steps import leaf, nodes_of, on
from clients.packages.recipe import recipes
from clients.packages.run import PACKAGES, version
from clients.tools import lacking
from examples.server import running_server
from scripts.build_docs import table
from scripts.generated_part import replace_part

PAGE: Final = CLIENTS / "README.md"
START, END = "<!-- costs: written by `python -m benchmarks.clients` -->\n", "<!-- end of costs -->"
CURL: Final = "curl"
#: in a burst
CALLS: Final = 150
HEAD: Final = ("client", "lines", "written for it", "package", "depends on", "a small call", "beside curl")
#: sources that users get, under the client's folder
SOURCES: Final = {
    "cpp": ("include/**/*.hpp", "src/**/*.hpp", "src/**/*.cpp"),
    "go": ("*.go",),
    "java": ("src/main/**/*.java",),
    "python": ("gradserve_client/**/*.py",),
    "rust": ("src/**/*.rs",),
    "typescript": ("src/**/*.ts",),
}
DEPENDENCIES: Final = {
    "cpp": "libcurl, nlohmann-json",
    "go": "nothing",
    "java": "Jackson",
    "python": "numpy, httpx",
    "rust": "ureq, serde_json",
    "typescript": "nothing",
}
#: as users build it: the one that tests build looks after memory
PROGRAMS: Final = LANGUAGES | {
    "cpp": replace(
        LANGUAGES["cpp"],
        start=("./build/optimized/conformance/conformance",),
        build=(
            ("cmake", "-S", ".", "-B", "build/optimized", "-DCMAKE_UNITY_BUILD=ON"),
            ("cmake", "--build", "build/optimized", "--parallel", "2", "--target", "conformance"),
        ),
    )
}
STEPS: Final = (leaf("input", "x"), leaf("parameter", "w"), on("mul", 0, 1), on("tanh", 2), on("sum", 3))
BITS: Final = {"dtype": "float64", "shape": [3], "hex": "000000000000f03f" * 3}
FEEDS: Final = [{"node": node, "tensor": BITS} for node in (0, 1)]
SENT: Final = [{"node": node, "tensor": to_json(BITS)} for node in (0, 1)]


def main() -> None:
    """Measure, and write the page's part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="bursts of each side")
    stated = parser.parse_args()
    languages = [name for name in LANGUAGES if not lacking(LANGUAGES[name].needs)]
    times = measured(languages, stated.rounds)
    text = "\n".join(part(times))
    PAGE.write_text(
        replace_part(PAGE.read_text(encoding="utf-8"), START, END, text, "what clients cost"), encoding="utf-8"
    )
    print(text)


def measured(languages: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of a call, burst by burst, of each client and of curl."""
    with ExitStack() as stack:
        url = stack.enter_context(running_server("--device", "cpu", "--workers", "1"))
        sides: dict[str, Callable[[], float]] = {}
        for name in languages:
            build(PROGRAMS[name])
            program = stack.enter_context(Program(PROGRAMS[name]))
            sides[name] = partial(marginal, partial(by_client, program, url))
        if shutil.which(CURL):
            body = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "body.json"
            sides[CURL] = partial(marginal, partial(by_curl, registered(url, body), body))
        for side in sides.values():
            side()  # plans and connections are there
        times: dict[str, list[float]] = {name: [] for name in sides}
        for i in range(rounds):
            turn = i % len(sides)
            for name in [*sides, *sides][turn : turn + len(sides)]:
                time.sleep(PAUSE)
                times[name].append(1000 * sides[name]())
        return times


def marginal(calls: Callable[[int], None]) -> float:
    """Seconds of one call more: so what is done once, a connection for example, is left out."""
    start = time.perf_counter()
    calls(1)
    between = time.perf_counter()
    calls(1 + CALLS)
    return (time.perf_counter() - between - (between - start)) / CALLS


def by_client(program: Program, url: str, count: int) -> None:
    """So many calls. Raises RuntimeError where one is not answered."""
    call = {"do": "gradients", "graph": {"steps": STEPS, "registered": True}, "feeds": FEEDS}
    result, _ = program.ask({"id": "timed", "kind": "live", "url": url, "client": {}, "calls": [call] * count})
    if not all("returned" in each for each in result["results"]):
        raise RuntimeError(f"a call was not answered: {result['results'][-1]}")


def registered(url: str, body: Path) -> str:
    """The address to which curl sends `body`, which is written."""
    graph = json.dumps({"graph": {"nodes": nodes_of(STEPS)}}).encode()
    with urlopen(Request(f"{url}/v1/graphs", graph, {"Content-Type": "application/json"})) as answer:
        kept = json.load(answer)["graph_id"]
    body.write_text(json.dumps({"feeds": SENT}), "utf-8")
    return f"{url}/v1/graphs/{kept}/gradients"


def by_curl(url: str, body: Path, count: int) -> None:
    """So many calls by one process. Raises CalledProcessError where one is refused."""
    once = ["--output", "/dev/null", url]
    command = [CURL, "--silent", "--fail", "-H", "Content-Type: application/json", "--data-binary", f"@{body}"]
    subprocess.run([*command, *once * count], check=True)


def part(times: Mapping[str, list[float]]) -> Iterator[str]:
    """The table, and what it says."""
    yield table(HEAD, [row(name, times) for name in LANGUAGES])
    if CURL in times:
        yield f"By curl the call takes {median(times[CURL]):.2f} ms.\n"


def row(name: str, times: Mapping[str, list[float]]) -> list[str]:
    """The line of one client; what was not measured is a dash."""
    own, written = lines(name)
    package = PACKAGES / name / recipes()[name].package.format(version=version())
    size = f"{package.stat().st_size / 1024:.0f} KiB" if package.exists() else "–"
    took = times.get(name)
    call = f"{median(took):.2f} ms" if took else "–"
    ratio = f"{median_of_ratios(took, times[CURL]):.2f}" if took and CURL in times else "–"
    return [f"[{name}]({name})", f"{own:,}", f"{written:,}", size, DEPENDENCIES[name], call, ratio]


def lines(name: str) -> tuple[int, int]:
    """Of the client's sources without its tests: those by hand, and those that `clients.ops` writes."""
    paths = {path for pattern in SOURCES[name] for path in (CLIENTS / name).glob(pattern)}
    texts = [path.read_text(encoding="utf-8") for path in sorted(paths) if not path.stem.endswith("_test")]
    counts = [(text.count("\n"), "python -m clients.ops" in text[:300]) for text in texts]
    return sum(n for n, written in counts if not written), sum(n for n, written in counts if written)


if __name__ == "__main__":
    main()
