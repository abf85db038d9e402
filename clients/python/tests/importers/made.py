"""ONNX models, their outputs by ONNX's evaluator, and numerical derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

Arrays = Mapping[str, np.ndarray]
#: the central difference of order 6: f'(x) h ≈ Σ c (f(x + k h) − f(x − k h)); B. Fornberg (1988), table 1
_STENCIL: Final = ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60))
_STEP: Final = 2e-3


def model(text: str, initialisers: Arrays | None = None, opset: int = 24) -> onnx.ModelProto:
    """A model in ONNX's own syntax, `name (inputs) => (outputs) { nodes }`, with these initialisers."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]>\n{text}')
    for name, array in (initialisers or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return proto


def outputs(proto: onnx.ModelProto, inputs: Arrays) -> list[np.ndarray]:
    """The outputs by ONNX's evaluator."""
    return [np.asarray(each) for each in ReferenceEvaluator(proto).run(None, dict(inputs))]


def with_initialisers(proto: onnx.ModelProto, arrays: Arrays) -> onnx.ModelProto:
    """A copy of a model with other initialisers."""
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    for each in other.graph.initializer:
        if each.name in arrays:
            each.CopyFrom(onnx.numpy_helper.from_array(arrays[each.name], each.name))
    return other


def loss(proto: onnx.ModelProto, inputs: Arrays) -> float:
    """The sum of squares of the first output."""
    return float(np.sum(outputs(proto, inputs)[0] ** 2))


def slopes(proto: onnx.ModelProto, inputs: Arrays, name: str) -> np.ndarray:
    """Numerical derivatives of the loss with respect to an initialiser."""
    start = next(onnx.numpy_helper.to_array(each) for each in proto.graph.initializer if each.name == name)
    result = np.zeros(start.shape)
    for place in np.ndindex(*start.shape):
        for steps, weight in _STENCIL:
            for side in (1, -1):
                moved = start.copy()
                moved[place] += side * steps * _STEP
                result[place] += side * weight * loss(with_initialisers(proto, {name: moved}), inputs) / _STEP
    return result


def normal(seed: int, **shapes: Any) -> dict[str, np.ndarray]:
    """Arrays of normal numbers by name."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape) / 2 for name, shape in shapes.items()}
