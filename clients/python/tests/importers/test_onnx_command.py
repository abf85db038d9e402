"""`python -m gradserve_client import`: the table of ops, and a model that a server stores."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import gradserve_client as gs
from tests.conftest import RunningServer

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")

from clients.python.tests.importers.made import model, outputs  # noqa: E402 - it needs ONNX
from gradserve_client.importing.command import main  # noqa: E402

MODEL = """net (float[n,3] x) => (float[n,4] y) {
    a = MatMul (x, w)
    b = Celu (a)
    y = Mul (b, s)
}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in {"w": (3, 4), "s": (4,)}.items()}
    path = tmp_path / "net.onnx"
    onnx.save(model(MODEL, weights), path)
    return path


def test_dry_run_prints_the_table_of_ops(file: Path) -> None:
    out = io.StringIO()
    assert main(["import", str(file), "--shape", "x=2x3", "--dry-run"], out) == 0
    assert out.getvalue().splitlines() == [
        "op      times  nodes each",
        "Celu    1      3",
        "MatMul  1      1",
        "Mul     1      1",
        "",
        "<imported: 8 nodes, 1 inputs, 2 parameters, 1 outputs>",
        "note: Celu: becomes 3 nodes: div_scalar, elu, mul_scalar",
    ]


def test_dry_run_of_a_refused_model_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noisy.onnx"
    onnx.save(model("n (float[2] x) => (float[2] y) {\n a = RandomNormalLike (x)\n y = Add (a, x) }"), path)
    out = io.StringIO()
    assert main(["import", str(path), "--dry-run"], out) == 1
    assert "RandomNormalLike  1      refused" in out.getvalue().splitlines()
    assert "RandomNormalLike (at the node that computes 'a'): it is random" in capsys.readouterr().err


def test_import_stores_model_graph_and_weights(file: Path, server: RunningServer, client: gs.Client) -> None:
    out = io.StringIO()
    assert main(["import", str(file), "--name", "cli", "--shape", "x=2x3", "--server", server.url], out) == 0
    lines = out.getvalue().splitlines()
    assert (lines[0], lines[2:5]) == ("model cli", ["2 tensors", "  cli.w", "  cli.s"])
    graph = client.registered(lines[1].removeprefix("graph "))
    nodes = {
        name: int(i) for kind, name, i in (line.replace(": node", "").split() for line in lines[5:9]) if kind != "note"
    }
    x = np.ones((2, 3), np.float32)
    feeds = {nodes["'x'"]: x, nodes["'w'"]: client.get("cli.w").handle, nodes["'s'"]: client.get("cli.s").handle}
    value = graph.forward(feeds, outputs=[nodes["'y'"]]).value
    assert np.allclose(value, outputs(onnx.load(file), {"x": x})[0], rtol=1e-6)
    model = client.model("cli")
    assert model.description == "cli, imported from net.onnx"
    assert model.forward({"x": x}).values["y"].tobytes() == value.tobytes()


def test_example_inputs_are_read_from_a_file(file: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", x=np.ones((5, 3), np.float32))
    assert main(["import", str(file), "--inputs", str(tmp_path / "inputs.npz"), "--dry-run"], io.StringIO()) == 0


WRONG = {
    "open": ([], "the shape of 'x' leaves n open in the file: pass it, as x=2x3"),
    "unknown": (["--shape", "z=2"], "'z' is not an input of the model"),
    "no shape": (["--shape", "x"], "'x' is not a valid input shape: pass NAME=2x3"),
}


@pytest.mark.parametrize("name", WRONG)
def test_error_is_one_line(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, sentence = WRONG[name]
    assert main(["import", str(file), "--dry-run", *options], io.StringIO()) == 1
    assert capsys.readouterr().err == f"{sentence}\n"
