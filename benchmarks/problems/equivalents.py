"""PyTorch's function for each op that it has, as `f(ops, *operands)`; attributes are those of the large samples."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

Equivalent = Callable[..., Any]

_SAME: Final = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "cos", "cosh",
    "digamma", "div", "erf", "erfc", "erfinv", "exp", "expm1", "flatten", "floor", "lgamma", "log", "log1p",
    "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "matmul", "maximum", "minimum", "mul", "neg",
    "pow", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "sub", "sum",
    "mean", "max", "min", "all", "any", "norm", "tan", "tanh", "tril", "triu", "where",
)  # fmt: skip
_RENAMED: Final = {
    "equal": "eq",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "is_finite": "isfinite",
    "log_sigmoid": "nn.functional.logsigmoid",
    "log_ndtr": "special.log_ndtr",
    "mod": "remainder",
    "gelu": "nn.functional.gelu",
    "elu": "nn.functional.elu",
    "selu": "nn.functional.selu",
    "silu": "nn.functional.silu",
    "softplus": "nn.functional.softplus",
    "bce_with_logits": "nn.functional.binary_cross_entropy_with_logits",
    "mse_loss": "nn.functional.mse_loss",
    "cross_entropy": "nn.functional.cross_entropy",
    "attention": "nn.functional.scaled_dot_product_attention",
    "inv": "linalg.inv",
    "solve": "linalg.solve",
    "slogdet": "linalg.slogdet",
    "mlp_layer": "nn.functional.linear",
    "i0": "special.i0",
    "i0e": "special.i0e",
    "i1": "special.i1",
    "i1e": "special.i1e",
    "igamma": "special.gammainc",
    "igammac": "special.gammaincc",
    "rem": "fmod",
    "sinc": "sinc",
    "xlog1py": "special.xlog1py",
    "xlogy": "xlogy",
    "zeta": "special.zeta",
    "cdist": "cdist",
}


def _call(path: str, *arguments: Any, **named: Any) -> Equivalent:
    """A function of PyTorch on the operands and then these; looked up when it is called, since it may be missing."""

    def call(ops: Any, *operands: Any) -> Any:
        del ops
        found: Any = importlib.import_module("torch")
        for part in path.split("."):
            found = getattr(found, part)
        return found(*operands, *arguments, **named)

    return call


EQUIVALENTS: Final[dict[str, Equivalent]] = {
    **{name: _call(name) for name in _SAME},
    **{name: _call(path) for name, path in _RENAMED.items()},
    "add_scalar": _call("add", 2.5),
    "sub_scalar": _call("sub", 2.5),
    "mul_scalar": _call("mul", 2.5),
    "div_scalar": _call("div", 2.5),
    "argmax": _call("argmax", -1),
    "argmin": _call("argmin", -1),
    "argsort": _call("argsort", dim=-1, stable=True),
    "sort": lambda ops, x: _call("sort", dim=-1, stable=True)(ops, x)[0],
    "adaptive_avg_pool": _call("nn.functional.adaptive_avg_pool2d", (10, 12)),
    "adaptive_max_pool": _call("nn.functional.adaptive_max_pool2d", (10, 12)),
    "avg_pool1d": _call("nn.functional.avg_pool1d", 2),
    "avg_pool3d": _call("nn.functional.avg_pool3d", 2),
    "avg_pool2d": _call("nn.functional.avg_pool2d", 2),
    "batch_norm": _call("nn.functional.batch_norm", None, None, training=True),
    "broadcast_to": lambda ops, x: x.broadcast_to(1024, 1024).contiguous(),
    "cast": lambda ops, x: x.double(),
    "cat": lambda ops, *parts: _call("cat")(ops, parts),
    "stack": lambda ops, *parts: _call("stack")(ops, parts),
    "cholesky": lambda ops, x: _call("linalg.cholesky")(ops, (x + x.mT) / 2),
    "clamp": _call("clamp", -1.0, 0.5),
    "conv1d": _call("nn.functional.conv1d", padding=1),
    "conv2d": _call("nn.functional.conv2d", padding=1),
    "conv3d": _call("nn.functional.conv3d", padding=1),
    "conv_transpose1d": _call("nn.functional.conv_transpose1d", stride=2),
    "conv_transpose2d": _call("nn.functional.conv_transpose2d", stride=2),
    "conv_transpose3d": _call("nn.functional.conv_transpose3d"),
    "cumlogsumexp": _call("logcumsumexp", -1),
    "cummax": lambda ops, x: x.cummax(-1).values,
    "cummin": lambda ops, x: x.cummin(-1).values,
    "cumprod": _call("cumprod", -1),
    "cumsum": _call("cumsum", -1),
    "diag": lambda ops, x: x.diagonal().clone(),
    "eigh": lambda ops, x: _call("linalg.eigh")(ops, (x + x.mT) / 2),
    "einsum": lambda ops, a, b: _call("einsum")(ops, "bij,bkj->bik", a, b),
    "embedding": lambda ops, x, index: x[index],
    "gather": lambda ops, x, index: x.gather(0, index),
    "flip": _call("flip", (0, 1)),
    "floor_div": _call("div", rounding_mode="floor"),
    "group_norm": lambda ops, x: _call("nn.functional.group_norm")(ops, x, 8),
    "index": lambda ops, x, i, j: x[i, j],
    "index_add": lambda ops, x, i, j, updates: x.index_put((i, j), updates, accumulate=True),
    "leaky_relu": _call("nn.functional.leaky_relu"),
    "layer_norm": lambda ops, x, *rest: _call("nn.functional.layer_norm")(ops, x, (1024,), *rest),
    "linear": lambda ops, x, w, b: x @ w + b,
    "log_softmax": _call("log_softmax", -1),
    "softmax": _call("softmax", -1),
    "logsumexp": _call("logsumexp", (0, 1)),
    "max_pool1d": _call("nn.functional.max_pool1d", 2),
    "max_pool2d": _call("nn.functional.max_pool2d", 2),
    "max_pool3d": _call("nn.functional.max_pool3d", 2),
    "pad": _call("nn.functional.pad", (1, 1, 1, 1)),
    "polygamma": lambda ops, x: _call("polygamma")(ops, 1, x),
    "pow_scalar": _call("pow", 2.5),
    "prod": _call("prod", -1),
    "rms_norm": lambda ops, x, w: _call("nn.functional.rms_norm")(ops, x, (1024,), w, 1e-5),
    "roll": _call("roll", 3, -1),
    "scatter_add": lambda ops, x, index, updates: x.scatter_add(0, index, updates),
    "segment_sum": lambda ops, x, index: x.new_zeros(64, 1024).index_add(0, index, x),
    "take_along": lambda ops, x, index: x.gather(1, index),
    "tile": _call("tile", (2, 2)),
    "topk": _call("topk", 16, 0),
    "transpose": lambda ops, x: x.T.contiguous(),
    "trunc_div": _call("div", rounding_mode="trunc"),
    "triangular_solve": _call("linalg.solve_triangular", upper=False),
    "var": _call("var", correction=0),
    "lu": _call("linalg.lu"),
    "matrix_exp": _call("linalg.matrix_exp"),
    "matrix_power": _call("linalg.matrix_power", 5),
    "cond_number": _call("linalg.cond"),
    "det": _call("linalg.det"),
    "lstsq": lambda ops, a, b: _call("linalg.lstsq")(ops, a, b[:, None]).solution,
    "matrix_rank": _call("linalg.matrix_rank"),
    "pinv": _call("linalg.pinv"),
    "qr": _call("linalg.qr"),
    "svd": _call("linalg.svd", full_matrices=False),
}
