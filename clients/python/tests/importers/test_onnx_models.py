"""Imported ONNX models: parameters, notes, free extents, and functions of the model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")

from clients.python.tests.importers.made import model, normal, outputs  # noqa: E402 - it needs ONNX
from gradserve_client.importing import ImportRefused  # noqa: E402
from gradserve_client.onnx import import_model  # noqa: E402

NORMS = """norms (float[2,4] x) => (float[2,4] y) {
    a = LayerNormalization (x, scale, shift)
    b = Relu (a)
    c = LayerNormalization (b, scale, other)
    y = Celu (c)
}"""


def single(seed: int, **shapes: Any) -> dict[str, np.ndarray]:
    return {name: array.astype(np.float32) for name, array in normal(seed, **shapes).items()}


def test_shared_initialiser_is_noted_and_sums_its_gradients(client: gs.Client) -> None:
    initialisers, inputs = single(1, scale=4, shift=4, other=4), single(2, x=(2, 4))
    result = import_model(model(NORMS, initialisers), inputs)
    assert [str(note) for note in result.notes] == [
        "Celu: becomes 3 nodes: div_scalar, elu, mul_scalar",
        (
            "scale (2×): read by 2 nodes, the node that computes 'a', the node that computes 'c': its gradient is the "
            "sum of theirs. An exporter may have merged equal initialisers; to train them separately, import through "
            "torch.export"
        ),
    ]
    separate = import_model(
        model(NORMS.replace("(b, scale,", "(b, second,"), initialisers | {"second": initialisers["scale"]}), inputs
    )
    assert "scale" not in {note.about for note in separate.notes}
    gradients = [
        client.gradients(each.graph, each.feeds(inputs), of=each.outputs["y"].square().sum()).gradients
        for each in (result, separate)
    ]
    total = gradients[1][separate.parameters["scale"]] + gradients[1][separate.parameters["second"]]
    assert np.allclose(gradients[0][result.parameters["scale"]], total, rtol=1e-5)


def test_float_initialisers_are_parameters_by_default() -> None:
    initialisers = single(1, scale=4, shift=4, other=4)
    result = import_model(model(NORMS, initialisers), single(2, x=(2, 4)), parameters=["scale"])
    assert [*result.parameters] == ["scale"]
    assert sum(node.op == "constant" for node in result.graph) == 2
    everything = import_model(model(NORMS, initialisers), single(2, x=(2, 4)))
    assert {*everything.parameters} == {*initialisers} == {*everything.values}
    assert everything.leaves.keys() == {"x", *initialisers}
    assert not everything.buffers


def test_float_initialiser_used_as_a_bound_is_noted() -> None:
    text = "clips (float[2,4] x) => (float[2,4] y) { y = Clip (x, low, high) }"
    bounds = {"low": np.float32(-1), "high": np.float32(1)}
    result = import_model(model(text, {name: np.asarray(bound) for name, bound in bounds.items()}), single(2, x=(2, 4)))
    assert [node.op for node in result.graph] == ["input", "clamp"]
    assert [(note.kind, note.about) for note in result.notes] == [("leaf", "low"), ("leaf", "high")]


MLP = """mlp (float[n,4] x) => (float[n,2] y) {
    a = Gemm (x, w1, b1)
    b = Relu (a)
    shape = Shape (b)
    c = Reshape (b, shape)
    y = Gemm (c, w2)
}"""


def test_second_example_frees_an_extent(client: gs.Client) -> None:
    proto = model(MLP, single(3, w1=(4, 5), b1=5, w2=(5, 2)))
    result = import_model(proto, single(4, x=(2, 4)), free={"x": [0]}, second=single(5, x=(7, 4)))
    assert result.inputs["x"].attrs["shape"] == [-1, 4]
    assert [node.attrs["shape"] for node in result.graph if node.op == "reshape"] == [[-1, 5]]
    for rows in (1, 2, 11):
        x = single(rows, x=(rows, 4))
        value = client.forward(result.graph, result.feeds(x), outputs=[result.outputs["y"]]).value
        assert np.allclose(value, outputs(proto, x)[0], rtol=1e-5, atol=1e-6)


IMAGES = """images (float[n,3,9,9] x) => (float[n,2] y) {
    a = Conv <pads = [1, 0, 1, 2]> (x, k)
    b = BatchNormalization (a, scale, shift, mean, variance)
    c = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [0, 1, 1, 0]> (b)
    d = AveragePool <kernel_shape = [2, 2], pads = [1, 1, 0, 0]> (c)
    e = GroupNormalization <num_groups = 2> (d, gain, offset)
    f = LRN <size = 3> (e)
    zeros = Constant <value_ints = [1]> ()
    ends = Constant <value_ints = [4]> ()
    axes = Constant <value_ints = [2]> ()
    g = Slice (f, zeros, ends, axes)
    h = Flatten (g)
    y = Gemm (h, w)
}"""


def test_batch_extent_of_images_is_free(client: gs.Client) -> None:
    shapes = {"k": (4, 3, 3, 3), "scale": 4, "shift": 4, "mean": 4, "gain": 4, "offset": 4, "w": (48, 2)}
    proto = model(IMAGES, single(1, **shapes) | {"variance": np.full(4, 2, np.float32)})
    result = import_model(proto, single(2, x=(2, 3, 9, 9)), free={"x": [0]}, second=single(3, x=(3, 3, 9, 9)))
    x = single(4, x=(5, 3, 9, 9))
    value = client.forward(result.graph, result.feeds(x), outputs=[result.outputs["y"]]).value
    alone = import_model(proto, x)
    expected = client.forward(alone.graph, alone.feeds(x), outputs=[alone.outputs["y"]]).value
    assert value.tobytes() == expected.tobytes()


def test_lrn_normalises_by_neighbouring_channels(client: gs.Client) -> None:
    """Computed by hand: ONNX's evaluator takes the number of images for the number of channels."""
    x = single(1, x=(2, 5, 3))["x"]
    proto = model("lrn (float[2,5,3] x) => (float[2,5,3] y) { y = LRN <size = 4, alpha = 0.5, beta = 0.6> (x) }")
    result = import_model(proto, {"x": x})
    padded = np.pad(x.astype(np.float64) ** 2, ((0, 0), (1, 2), (0, 0)))
    neighbours = np.stack([padded[:, c : c + 4].sum(axis=1) for c in range(5)], axis=1)
    value = client.forward(result.graph, result.feeds({"x": x}), outputs=[result.outputs["y"]]).value
    assert np.allclose(value, x / (1 + 0.5 / 4 * neighbours) ** 0.6, rtol=1e-5)


def test_extent_is_fixed_by_default() -> None:
    result = import_model(model(MLP, single(3, w1=(4, 5), b1=5, w2=(5, 2))), single(4, x=(2, 4)))
    assert result.inputs["x"].attrs["shape"] == [2, 4]


def test_extent_that_cannot_be_free_names_its_node() -> None:
    text = """positions (float[n,4] x) => (float[n,4] y) {
        shape = Shape <start = 0, end = 1> (x)
        ones = ConstantOfShape (shape)
        one = Constant <value_ints = [1]> ()
        column = Unsqueeze (ones, one)
        y = Add (x, column)
    }"""
    with pytest.raises(ImportRefused) as caught:
        import_model(model(text), single(4, x=(2, 4)), free={"x": [0]}, second=single(5, x=(3, 4)))
    assert str(caught.value) == (
        "cannot import the model with free extents because of one obstacle:\n"
        "  constant (at node 1): its value is a tensor of shape [2, 1], "
        "but a tensor of shape [3, 1] with the second example"
    )


WRONG_SECONDS = {
    "the same": ((2, 4), "axis 0 of 'x' is free, but both examples have the extent 2 there"),
    "too much": ((3, 5), r"the examples of 'x' have shapes \[2, 4\] and \[3, 5\], but only axes \[0\] are free"),
}


@pytest.mark.parametrize("name", WRONG_SECONDS)
def test_second_example_differs_in_free_extents_only(name: str) -> None:
    shape, sentence = WRONG_SECONDS[name]
    proto = model("plain (float[n,m] x) => (float[n,m] y) { y = Neg (x) }")
    with pytest.raises(gs.InputError, match=sentence):
        import_model(proto, single(4, x=(2, 4)), free={"x": [0]}, second=single(5, x=shape))


def test_model_functions_are_expanded(client: gs.Client) -> None:
    text = """<ir_version: 10, opset_import: ["": 24, "own": 1]>
    calls (float[3] x) => (float[3] y) {
        y = own.scaled <by = 3.0> (x)
    }
    <opset_import: ["": 24], domain: "own">
    scaled <by> (a) => (b) {
        s = Constant <value_float: float = @by> ()
        b = Mul (a, s)
    }"""
    proto = onnx.parser.parse_model(text)
    result = import_model(proto, {"x": np.arange(3, dtype=np.float32)})
    value = client.forward(result.graph, result.feeds({"x": [1, 2, 3]}), outputs=[result.outputs["y"]]).value
    assert value.tolist() == [3, 6, 9]


def test_constant_condition_selects_its_branch() -> None:
    text = """known (float[3] x) => (float[3] y) {
        one = Constant <value_int = 1> ()
        p = Cast <to = 9> (one)
        y = If <then_branch = yes () => (float[3] a) { a = Neg (x) },
                else_branch = no () => (float[3] b) { b = Exp (x) }> (p)
    }"""
    result = import_model(model(text), {"x": np.ones(3, np.float32)})
    assert [node.op for node in result.graph] == ["input", "neg"]


def test_integers_are_divided_exactly(client: gs.Client) -> None:
    a = np.array([2**62 + 3, -(2**62) - 3, 7, -7, 2**53 + 1, -(2**63) + 1], np.int64)
    b = np.array([3, 3, -2, 2, 1, 2], np.int64)
    result = import_model(model("q (int64[6] a, int64[6] b) => (int64[6] y) { y = Div (a, b) }"), {"a": a, "b": b})
    value = client.forward(result.graph, result.feeds({"a": a, "b": b}), outputs=[result.outputs["y"]]).value
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    assert value.tolist() == [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]


def test_weights_as_resident_tensors(client: gs.Client) -> None:
    proto = model(MLP, single(3, w1=(4, 5), b1=5, w2=(5, 2)))
    result = import_model(proto, single(4, x=(2, 4)))
    graph, residents = result.register(client), result.keep(client, "onnx-mlp")
    assert sorted(each.name for each in residents.values()) == ["onnx-mlp.b1", "onnx-mlp.w1", "onnx-mlp.w2"]
    x = single(6, x=(2, 4))["x"]
    value = graph.forward({**residents, result.inputs["x"]: x}, outputs=[result.outputs["y"]]).value
    assert np.allclose(value, outputs(proto, {"x": x})[0], rtol=1e-5, atol=1e-6)


RECURRENT = """recurrent (double[2] x) => (double[1,1,1,2] y) {
    a, h = RNN <hidden_size = 2, clip = 0.25> (given, w, r)
    y = Mul (a, x)
}"""


def test_recurrent_node_of_constants_is_not_folded(client: gs.Client) -> None:
    """ONNX's evaluator ignores the clip."""
    weights = {"given": np.full((1, 1, 2), 2.0), "w": np.eye(2)[None], "r": np.zeros((1, 2, 2))}
    result = import_model(model(RECURRENT, weights), {"x": np.ones(2)}, parameters=[])
    value = client.forward(result.graph, result.feeds({"x": np.ones(2)}), outputs=[result.outputs["y"]]).value
    assert np.allclose(value, np.full((1, 1, 1, 2), np.tanh(0.25)), rtol=1e-14)
