"""Refused ONNX imports: all obstacles at once, each with op, count, places, reason and workaround."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import gradserve_client as gs

onnx = pytest.importorskip("onnx", reason="ONNX is not installed")

from clients.python.tests.importers.made import model  # noqa: E402 - it needs ONNX
from gradserve_client.importing import ImportRefused  # noqa: E402
from gradserve_client.onnx import import_model  # noqa: E402

X = np.ones((2, 3), np.float32)


def refused(text: str, inputs: Any = None, opset: int = 24, **options: Any) -> ImportRefused:
    with pytest.raises(ImportRefused) as caught:
        import_model(model(text, opset=opset), inputs or {"x": X}, **options)
    return caught.value


def test_all_obstacles_are_reported_at_once() -> None:
    error = refused("""several (float[2,3] x) => (float[2,3] y) {
        a = RandomNormalLike (x)
        u = Unique (x)
        b = RandomNormalLike (x)
        s = Add (a, b)
        h = Cast <to = 16> (s)
        t = Tanh (s)
        y = Add (t, x)
    }""")
    assert str(error) == (
        "cannot import the model 'several' because of 3 obstacles:\n"
        "  RandomNormalLike (2 times, at the node that computes 'a', the node that computes 'b'): it is random; "
        "pass the noise as an input of the model\n"
        "  Unique (at the node that computes 'u'): the size of its result depends on the values of the data\n"
        "  Cast (at the node that computes 'h'): it returns bfloat16, an unsupported dtype"
    )
    assert [(each.op, len(each.places)) for each in error.obstacles] == [
        ("RandomNormalLike", 2),
        ("Unique", 1),
        ("Cast", 1),
    ]
    restored = pickle.loads(pickle.dumps(error))
    assert (str(restored), restored.obstacles) == (str(error), error.obstacles)


def test_node_is_reported_by_its_name() -> None:
    proto = model("named (float[2,3] x) => (float[2,3] y) { y = RandomNormalLike (x) }")
    proto.graph.node[0].name = "noise"
    with pytest.raises(ImportRefused, match=r"RandomNormalLike \(at 'noise'\): it is random"):
        import_model(proto, {"x": X})


SENTENCES = {
    "quantised": (
        """q (float[2,3] x) => (uint8[2,3] y) {
            s = Constant <value_float = 0.1> ()
            y = QuantizeLinear (x, s)
        }""",
        (
            "QuantizeLinear (at the node that computes 'y'): it quantises, and integers have no derivatives; "
            "import the model as it was before quantisation"
        ),
    ),
    "no such op": (
        """other (float[2,3] x) => (float[2,3] y) { y = Adagrad (x) }""",
        (
            "Adagrad (at the node that computes 'y'): there is no rule for it, and ONNX does not define it in terms of "
            "other ops"
        ),
    ),
    "shape by data": (
        """shaped (float[2,3] x, int64[2] shape) => (float[3,2] y) { y = Reshape (x, shape) }""",
        (
            "Reshape (at the node that computes 'y'): its shape would depend on the data, but must be constant"
            "; list 'shape' in `constants` to make the example's values part of the graph"
        ),
    ),
    "training": (
        """drops (float[2,3] x) => (float[2,3] y) {
            r = Constant <value_float = 0.5> ()
            one = Constant <value_int = 1> ()
            t = Cast <to = 9> (one)
            y = Dropout (x, r, t)
        }""",
        (
            "Dropout (at the node that computes 'y'): it is random in training; "
            "export the model for inference, or pass the mask as an input"
        ),
    ),
    "endless": (
        """endless (float[2,3] x) => (float[2,3] y) {
            one = Constant <value_int = 1> ()
            on = Cast <to = 9> (one)
            y = Loop <body = step (int64 i, bool c, float[2,3] v) => (bool still, float[2,3] w) {
                m = ReduceSum <keepdims = 0> (v)
                hundred = Constant <value_float = 100.0> ()
                still = Less (m, hundred)
                w = Add (v, v)
            }> (, on, x)
        }""",
        (
            "Loop (at the node that computes 'y'): the number of its steps depends on the data; "
            "pass a bound as `max_steps`"
        ),
    ),
    "growing": (
        """growing (float[2,3] x) => (float[n,3] y) {
            four = Constant <value_int = 4> ()
            one = Constant <value_int = 1> ()
            on = Cast <to = 9> (one)
            y = Loop <body = step (int64 i, bool c, float[n,3] v) => (bool still, float[n,3] w) {
                still = Identity (c)
                w = Concat <axis = 0> (v, v)
            }> (four, on, x)
        }""",
        (
            "Loop (at the node that computes 'y'): its carry 'v' has two types, "
            "float32[2, 3] and float32[4, 3], but must have one"
        ),
    ),
    "string": (
        """strings (string[2] x) => (string[2] y) { y = Identity (x) }""",
        "input (at 'x'): it holds strings, which gradserve does not support",
    ),
    "bfloat16": (
        """narrow (bfloat16[2] x) => (bfloat16[2] y) { y = Neg (x) }""",
        (
            "input (at 'x'): it holds bfloat16, an unsupported dtype; "
            "cast it, and everything computed from it, to a supported dtype before exporting"
        ),
    ),
    "within": (
        """within (float[2,3] x, int64[2] d) => (float[a,b] y) { y = CenterCropPad (x, d) }""",
        (
            "CenterCropPad (at the node that computes 'y'): within it, Pad: its pads would depend on the data, "
            "but must be constant; list 'd' in `constants` to make the example's values part of the graph"
        ),
    ),
}
INPUTS = {
    "shape by data": {"x": X, "shape": np.array([3, 2])},
    "string": {"x": np.array(["a", "b"], object)},
    "bfloat16": {"x": onnx.helper.make_tensor("x", onnx.TensorProto.BFLOAT16, [2], [1.0, 2.0])},
    "within": {"x": X, "d": np.array([4, 1])},
}


@pytest.mark.parametrize("name", SENTENCES)
def test_refusal_has_a_place_and_a_reason(name: str) -> None:
    text, sentence = SENTENCES[name]
    assert sentence in str(refused(text, INPUTS.get(name))).split("\n  ")


def test_suggested_workarounds_work() -> None:
    text = SENTENCES["shape by data"][0]
    result = import_model(model(text), INPUTS["shape by data"], constants=["shape"])
    assert [*result.inputs] == ["x"]
    looped = import_model(model(SENTENCES["endless"][0]), {"x": X}, max_steps=20)
    assert "while" in {node.op for node in looped.graph}


def test_older_version_of_an_op_is_refused() -> None:
    text = "old (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax (x) }"
    error = refused(text, {"x": np.ones((2, 3, 4), np.float32)}, opset=11)
    assert str(error).endswith(
        "Softmax (at the node that computes 'y'): it is defined by opset 11, differently from opset 13; "
        "convert the model to opset 13 or newer with onnx.version_converter"
    )


INPUT_ERRORS = {
    "missing": ({}, {}, "the inputs of the model are 'x': 'x' is missing"),
    "unknown": ({"x": X, "z": X}, {}, "the inputs of the model are 'x': 'z' is unknown"),
    "too many": ([X, X], {}, "the inputs of the model are 'x': expected 1, got 2"),
    "another dtype": ({"x": X.astype(np.float64)}, {}, "'x' is float32 in the model, but its example is float64"),
    "no parameter": ({"x": X}, {"parameters": ["w"]}, "'w' is not an initialiser of the model"),
    "no constant": (
        {"x": X},
        {"constants": ["w"]},
        "'w' is not an input of the model and cannot be one of its constants",
    ),
}


@pytest.mark.parametrize("name", INPUT_ERRORS)
def test_invalid_inputs_are_refused(name: str) -> None:
    inputs, options, sentence = INPUT_ERRORS[name]
    with pytest.raises(gs.InputError) as caught:
        import_model(model("plain (float[2,3] x) => (float[2,3] y) { y = Neg (x) }"), inputs, **options)
    assert str(caught.value) == sentence


def test_invalid_models_are_refused() -> None:
    for wrong in (b"no model at all", b"", "no/such/file.onnx"):
        with pytest.raises(gs.InputError, match="this is not an ONNX model"):
            import_model(wrong, {})
    with pytest.raises(gs.InputError, match="the installed onnx supports at most"):
        import_model(model("new (float[2,3] x) => (float[2,3] y) { y = Neg (x) }", opset=99), {"x": X})
    with pytest.raises(gs.InputError, match="Neg reads 'z', which no earlier node computes"):
        import_model(model("broken (float[2,3] x) => (float[2,3] y) { y = Neg (z) }"), {"x": X})
