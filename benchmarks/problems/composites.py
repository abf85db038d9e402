"""Composites at the size of a layer, each also from primitives: one op must not be slower than what it stands for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from benchmarks.problems.networks import gelu_from_primitives, norm_from_primitives, softmax_from_primitives
from benchmarks.workload import Question, Workload, normal

ROWS, COLUMNS = 4096, 1024
ELEMENTS: Final = "4,096 × 1,024 numbers"
Part = Callable[..., Any]


def softmax(name: str, part: Part) -> Workload:
    """Forward and back; the loss weighs what comes out, since the sum of a softmax is always 1."""

    def loss(ops: Any, x: Any, weights: Any) -> Any:
        return ops.sum(part(ops, x) * weights)

    return _workload(name, loss, [normal(1, ROWS, COLUMNS)], [normal(2, ROWS, COLUMNS)])


def layer_norm(name: str, part: Part) -> Workload:
    """Forward and back, with the gradients of weight and bias."""

    def loss(ops: Any, x: Any, weight: Any, bias: Any, weights: Any) -> Any:
        return ops.sum(part(ops, x, weight, bias) * weights)

    parameters = [normal(1, ROWS, COLUMNS), 1 + normal(3, COLUMNS, scale=0.1), normal(4, COLUMNS)]
    return _workload(name, loss, parameters, [normal(2, ROWS, COLUMNS)])


def gelu(name: str, part: Part) -> Workload:
    """Forward and back."""

    def loss(ops: Any, x: Any, weights: Any) -> Any:
        return ops.sum(part(ops, x) * weights)

    return _workload(name, loss, [normal(1, ROWS, COLUMNS)], [normal(2, ROWS, COLUMNS)])


def bias_relu(name: str) -> Workload:
    """Forward alone."""
    parameters = [normal(1, ROWS, COLUMNS), normal(2, COLUMNS)]
    return _workload(name, lambda ops, x, bias: ops.relu(x + bias), parameters, [], Question.VALUES)


def bias_relu_back(name: str) -> Workload:
    """Forward and back."""

    def loss(ops: Any, x: Any, bias: Any, weights: Any) -> Any:
        return ops.sum(ops.relu(x + bias) * weights)

    return _workload(name, loss, [normal(1, ROWS, COLUMNS), normal(2, COLUMNS)], [normal(3, ROWS, COLUMNS)])


def _workload(
    name: str, function: Part, parameters: list[Any], data: list[Any], question: Question = Question.GRADIENTS
) -> Workload:
    asked = "values" if question is Question.VALUES else "value and gradients"
    arrays = [np.ascontiguousarray(a, "float32") for a in parameters]
    return Workload(name, f"{name}: {asked}, {ELEMENTS}", function, arrays, data, question)


COMPOSITES: Final[dict[str, Callable[[], Workload]]] = {
    "softmax": lambda: softmax("softmax", lambda ops, x: ops.softmax(x)),
    "softmax-primitives": lambda: softmax("softmax-primitives", softmax_from_primitives),
    "layer_norm": lambda: layer_norm("layer_norm", lambda ops, x, w, b: ops.layer_norm(x, w, b)),
    "layer_norm-primitives": lambda: layer_norm("layer_norm-primitives", norm_from_primitives),
    "gelu": lambda: gelu("gelu", lambda ops, x: ops.gelu(x, approximate="tanh")),
    "gelu-primitives": lambda: gelu("gelu-primitives", gelu_from_primitives),
    "gelu-erf": lambda: gelu("gelu-erf", lambda ops, x: ops.gelu(x)),
    "gelu-erf-primitives": lambda: gelu("gelu-erf-primitives", _gelu_by_erf),
    "bias-relu": lambda: bias_relu("bias-relu"),
    "bias-relu-back": lambda: bias_relu_back("bias-relu-back"),
}


def _gelu_by_erf(ops: Any, x: Any) -> Any:
    return x * 0.5 * (ops.erf(x * 0.5**0.5) + 1.0)
