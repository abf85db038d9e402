"""The demo: a classifier trained on real data, through HTTP alone."""

from __future__ import annotations

import ast
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from examples.server import running_server

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER_PACKAGES = {"engine", "schemas", "service"}


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as a user does."""
    command = [sys.executable, EXAMPLES / "digits.py", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server for tests that do not stop it; bitwise, so that results do not change when kernels are compiled."""
    with running_server("--device", "cpu", "--workers", "1", "--determinism", "bitwise") as address:
        yield address


@pytest.mark.smoke
def test_demo_learns_the_digits() -> None:
    run = demo()
    assert run.returncode == 0, run.stderr
    last = run.stdout.strip().splitlines()[-1]
    match = re.fullmatch(r"test accuracy: (0\.\d+)", last)
    assert match, last
    assert float(match[1]) >= 0.95


def test_demo_learns_with_data_on_the_server(url: str) -> None:
    """The server stores no tensors afterwards."""
    run = demo("--reduce", "--epochs", "12", "--url", url)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.strip().rpartition(" ")[2]) >= 0.93
    assert httpx.get(f"{url}/v1/tensors").json() == {"tensors": []}


def test_demo_shows_a_request_and_draws_the_loss(url: str) -> None:
    run = demo("--epochs", "1", "--url", url)
    assert run.returncode == 0, run.stderr
    assert '"data": [2.0, 4.0, 6.0]' in run.stdout, "the gradient of sum(w²) at (1, 2, 3)"
    picture = re.search(r"^loss curve: (.+)$", run.stdout, re.MULTILINE)
    assert picture
    assert Path(picture[1]).read_bytes().startswith(b"\x89PNG")
    assert "training: 100%" in run.stderr, "the progress bar"


def test_picture_option_writes_a_reproducible_svg(url: str, tmp_path: Path) -> None:
    """The SVG contains no date, so that it changes only with the curve."""
    pictures = [tmp_path / "one" / "loss.svg", tmp_path / "two.svg"]
    for picture in pictures:
        assert demo("--epochs", "1", "--url", url, "--picture", str(picture)).returncode == 0
    first, second = (picture.read_text(encoding="utf-8") for picture in pictures)
    assert "<svg" in first
    assert "<dc:date" not in first
    assert first == second
    assert "cross-entropy of the batch" in (EXAMPLES.parent / "docs/digits.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_import_no_server_code(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in imported} & SERVER_PACKAGES


PROGRAM = """
import sys
sys.path.insert(0, {examples!r})
from server import running_server
with running_server("--workers", "1") as url:
    print(url, flush=True)
    {then}
"""


@pytest.mark.parametrize("then", ["pass", "raise KeyboardInterrupt"])
def test_server_stops_when_the_block_ends(then: str) -> None:
    program = PROGRAM.format(examples=str(EXAMPLES), then=then)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    url = run.stdout.strip()
    assert urlsplit(url).port, run.stderr
    with pytest.raises(httpx.ConnectError):
        httpx.get(url + "/health/live")


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Shells make background processes ignore Ctrl-C, and the subprocesses of a test would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_server_stops_with_the_demo(number: int) -> None:
    """The signal goes to the demo alone; Ctrl-C at a terminal would reach its server, too."""
    command = [sys.executable, EXAMPLES / "digits.py", "--epochs", "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().removeprefix("server: ").strip()
            assert httpx.get(url + "/health/live").is_success
            process.send_signal(number)
            assert process.wait(timeout=60) != 0
        finally:
            process.kill()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url + "/health/live")
