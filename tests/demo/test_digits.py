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
OURS = {"engine", "schemas", "service"}


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the demo as a user does."""
    command = [sys.executable, EXAMPLES / "digits.py", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where what is not about the server's life is asked: the same bits before and after kernels are there."""
    with running_server("--device", "cpu", "--workers", "1", "--determinism", "bitwise") as address:
        yield address


@pytest.mark.smoke
def test_it_learns_the_digits() -> None:
    run = demo()
    assert run.returncode == 0, run.stderr
    last = run.stdout.strip().splitlines()[-1]
    found = re.fullmatch(r"test accuracy: (0\.\d+)", last)
    assert found, last
    assert float(found[1]) >= 0.95


def test_so_it_does_where_data_and_gradients_stay_with_the_server(url: str) -> None:
    """Which has nothing left of them when it is over."""
    run = demo("--reduce", "--epochs", "12", "--url", url)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.strip().rpartition(" ")[2]) >= 0.93
    assert httpx.get(f"{url}/v1/tensors").json() == {"tensors": []}


def test_it_shows_one_request_and_draws_the_loss(url: str) -> None:
    run = demo("--epochs", "1", "--url", url)
    assert run.returncode == 0, run.stderr
    assert '"data": [2.0, 4.0, 6.0]' in run.stdout, "the gradient of sum(w²) at (1, 2, 3)"
    picture = re.search(r"^loss curve: (.+)$", run.stdout, re.MULTILINE)
    assert picture
    assert Path(picture[1]).read_bytes().startswith(b"\x89PNG")
    assert "training: 100%" in run.stderr, "the progress bar"


def test_the_picture_of_the_readme_is_made_by_an_option(url: str, tmp_path: Path) -> None:
    """As SVG it has no date in it, so that it changes only where the curve does."""
    pictures = [tmp_path / "one" / "loss.svg", tmp_path / "two.svg"]
    for picture in pictures:
        assert demo("--epochs", "1", "--url", url, "--picture", str(picture)).returncode == 0
    first, second = (picture.read_text(encoding="utf-8") for picture in pictures)
    assert "<svg" in first
    assert "<dc:date" not in first
    assert first == second
    assert "cross-entropy of the batch" in (EXAMPLES.parent / "docs/digits.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_examples_use_nothing_but_the_wire(program: Path) -> None:
    tree = ast.parse(program.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name.partition(".")[0] for name in imported} & OURS


PROGRAM = """
import sys
sys.path.insert(0, {examples!r})
from server import running_server
with running_server("--workers", "1") as url:
    print(url, flush=True)
    {then}
"""


@pytest.mark.parametrize("then", ["pass", "raise KeyboardInterrupt"])
def test_the_server_is_stopped_however_the_block_ends(then: str) -> None:
    program = PROGRAM.format(examples=str(EXAMPLES), then=then)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    url = run.stdout.strip()
    assert urlsplit(url).port, run.stderr
    with pytest.raises(httpx.ConnectError):
        httpx.get(url + "/health/live")


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """A shell has what runs in its background ignore Ctrl-C, and what a test starts would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_is_stopped_when_the_demo_is(number: int) -> None:
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
