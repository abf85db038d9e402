"""Import of ONNX models as graphs. This package needs `onnx`, which the extra `onnx` installs.

An import walks the nodes of a model in order. A node whose operands are all constants is folded: ONNX's reference
evaluator runs it, and its result becomes a constant. For any other node the evaluator computes the result for the
example inputs, which gives its shape and dtype, and a rule writes the equivalent nodes of the graph. The rule of
`LeakyRelu`, for example, is:

    @RULES("LeakyRelu", since=6)
    def leaky_relu(call): return call.node().leaky_relu(alpha=call.attrs["alpha"])

An op without a rule is replaced by the function with which ONNX defines it. If there is none, the op is recorded as an
obstacle, and the walk goes on with the example's values, so that one `ImportRefused` reports all obstacles.
"""

from __future__ import annotations

from gradserve_client.onnx.examples import import_file
from gradserve_client.onnx.importer import import_model

__all__ = ["import_file", "import_model"]
