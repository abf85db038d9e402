"""Models of ONNX: a small net, one that convolves, and a recurrent one, which becomes a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from clients.gallery.example import Evaluate, ImportedExample
from gradserve_client.importing import Imported
from gradserve_client.onnx import import_model
from gradserve_client.tensors import Array

_SOURCE: Final = f"ONNX's reference evaluator, {onnx.__version__.rpartition('.')[0]}"
_RNG: Final = np.random.default_rng(24)
_HEAD: Final = '<ir_version: 10, opset_import: ["": 24]>'


def _drawn(*shape: int) -> Array:
    """Numbers of two digits."""
    return _RNG.normal(0, 0.5, shape).round(2)


def _loading(
    text: str, weights: Mapping[str, Array], inputs: Mapping[str, Array]
) -> Callable[[], tuple[Imported, Evaluate]]:
    """A model that is written as text, its weights beside it as initialisers."""

    def load() -> tuple[Imported, Evaluate]:
        model = onnx.parser.parse_model(f"{_HEAD}\n{text}")
        for name, array in weights.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        return import_model(model, dict(inputs)), _evaluating(model)

    return load


def _evaluating(model: onnx.ModelProto) -> Evaluate:
    """The model with its initialisers as inputs, so that they can be moved."""
    open_model = onnx.ModelProto()
    open_model.CopyFrom(model)
    for initializer in model.graph.initializer:
        open_model.graph.input.append(
            onnx.helper.make_tensor_value_info(initializer.name, initializer.data_type, list(initializer.dims))
        )
    del open_model.graph.initializer[:]
    evaluator = ReferenceEvaluator(open_model)
    return lambda known: evaluator.run(None, dict(known))


_NET_INPUTS: Final = {"x": _drawn(4, 3)}
_NET: Final = ImportedExample(
    name="onnx_net",
    title="A network from ONNX",
    paragraph="Two layers as an exporter writes them: Gemm, Tanh and MatMul. The weights are leaves under their own "
    "names, each with its gradient.",
    source=_SOURCE,
    tags=("machine learning", "imported", "ONNX"),
    inputs=_NET_INPUTS,
    load=_loading(
        """net (double[4,3] x) => (double[4,2] y) {
            a = Gemm <transB = 1> (x, w1, b1)
            h = Tanh (a)
            y = MatMul (h, w2)
        }""",
        {"w1": _drawn(5, 3), "b1": _drawn(5), "w2": _drawn(5, 2)},
        _NET_INPUTS,
    ),
)

_IMAGE: Final = {"image": _drawn(1, 1, 6, 6)}
_CONVOLUTION: Final = ImportedExample(
    name="onnx_convolution",
    title="A convolutional network from ONNX",
    paragraph="A 6 × 6 image passes through a convolution, relu, pooling, a linear layer with three classes, and "
    "softmax.",
    source=_SOURCE,
    tags=("machine learning", "imported", "ONNX"),
    inputs=_IMAGE,
    load=_loading(
        """net (double[1,1,6,6] image) => (double[1,3] classes) {
            c = Conv <kernel_shape = [3, 3]> (image, kernel, bias)
            r = Relu (c)
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)
            f = Flatten (p)
            z = MatMul (f, w)
            classes = Softmax <axis = -1> (z)
        }""",
        {"kernel": _drawn(2, 1, 3, 3), "bias": _drawn(2), "w": _drawn(8, 3)},
        _IMAGE,
    ),
)

_SERIES: Final = {"series": _drawn(5, 1, 2)}
_RECURRENT: Final = ImportedExample(
    name="onnx_gru",
    title="A recurrent network from ONNX",
    paragraph="A GRU of three units over a series of five steps. Its cell becomes a function that a scan runs, so the "
    "graph would be no longer for a thousand steps.",
    source=_SOURCE,
    tags=("machine learning", "imported", "ONNX"),
    inputs=_SERIES,
    load=_loading(
        """net (double[5,1,2] series) => (double[5,1,1,3] states) {
            states = GRU <hidden_size = 3> (series, w, r)
        }""",
        {"w": _drawn(1, 9, 2), "r": _drawn(1, 9, 3)},
        _SERIES,
    ),
)

EXAMPLES: Final = (_NET, _CONVOLUTION, _RECURRENT)
