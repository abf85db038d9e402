"""Normalisation by means and variances, and dropout."""

from __future__ import annotations

import numpy as np

from gradserve_client.graph import Node
from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import TO_THE_END
from gradserve_client.onnx.call import Call, RuleResult
from gradserve_client.onnx.families.helpers import as_dtype
from gradserve_client.onnx.families.table import RULES


def _per_channel(call: Call, i: int) -> Node:
    """Return operand i, one number per channel, in a shape that broadcasts against operand 0."""
    return call.node(i).reshape(shape=[1, call.shape()[1], *[1] * (call.rank() - 2)])


@RULES("BatchNormalization", since=9)
def batch_normalization(call: Call) -> RuleResult:
    """Normalise by the given statistics, or in training by those of the batch, which also update the running ones."""
    eps = call.attrs["epsilon"]
    training = bool(call.attrs.get("training_mode", 0))
    if call.version < 14 and call.is_requested(1):
        raise Blocked(
            "before opset 14, its additional outputs belong to another form of training",
            "convert it to opset 14 or newer",
        )
    if not training:
        return _by_statistics(call)
    x, axes = call.node(), [axis for axis in range(call.rank()) if axis != 1]
    y = x.batch_norm(call.node(1), call.node(2), axis=1, eps=eps)
    return [y, _moved(call, 3, x.mean(axes=axes)), _moved(call, 4, x.var(axes=axes))]


def _by_statistics(call: Call) -> Node:
    """Normalise by given statistics, in the widest of the operands' dtypes, and cast back."""
    wide = np.result_type(*(call.dtype(i) for i in range(5)))
    x, scale, shift, mean, variance = (as_dtype(call.node(i), call.dtype(i), wide) for i in range(5))
    # a vector has no channel axis: treat it as a single channel
    flat = call.rank() == 1
    x = x.unsqueeze(axes=[1]) if flat else x
    y = x.batch_norm_given(mean, variance, scale, shift, axis=1, eps=call.attrs["epsilon"])
    return as_dtype(y.squeeze(axes=[1]) if flat else y, wide, call.dtype())


def _moved(call: Call, i: int, statistic: Node) -> Node:
    """Update running statistics with those of a batch."""
    momentum = call.attrs["momentum"]
    return call.node(i).mul_scalar(momentum).add(statistic.mul_scalar(1 - momentum))


@RULES("InstanceNormalization", since=6)
def instance_normalization(call: Call) -> RuleResult:
    """Normalise each channel of each example on its own."""
    return call.node().group_norm(call.node(1), call.node(2), groups=call.shape()[1], eps=call.attrs["epsilon"])


@RULES("LayerNormalization", since=17)
def layer_normalization(call: Call) -> RuleResult:
    """Normalise over `axis` and all later axes. float16 is computed in float32, as ONNX defines it."""
    axes = [*range(call.axis(call.rank()), call.rank())]
    eps, dtype = call.attrs["epsilon"], call.dtype()
    x, extents = _widened(call), call.shape()[axes[0] :]
    if _wide(dtype) == dtype and all(call.shape(i) == extents for i in (1, 2) if call.has(i)):
        results = [x.layer_norm(call.node(1), call.node_or_none(2), axes=axes, eps=eps)]
    else:
        y = as_dtype(x.layer_norm(axes=axes, eps=eps), _wide(dtype), dtype).mul(call.node(1))
        results = [y.add(call.node(2)) if call.has(2) else y]
    if call.is_requested(1):
        results.append(as_dtype(x.mean(axes=axes, keepdims=True), _wide(dtype), call.results[1].dtype))
    if call.is_requested(2):
        inverse = x.var(axes=axes, keepdims=True).add_scalar(eps).rsqrt()
        results.append(as_dtype(inverse, _wide(dtype), call.results[2].dtype))
    return results


@RULES("GroupNormalization", since=21)
def group_normalization(call: Call) -> RuleResult:
    """Normalise groups of channels of each example, then scale each channel.

    float16 is computed in float32, as ONNX defines it.
    """
    stated, dtype = {"groups": call.attrs["num_groups"], "eps": call.attrs["epsilon"]}, call.dtype()
    if _wide(dtype) == dtype:
        return call.node().group_norm(call.node(1), call.node(2), **stated)
    z = as_dtype(_widened(call).group_norm(**stated), _wide(dtype), dtype)
    return z.mul(_per_channel(call, 1)).add(_per_channel(call, 2))


@RULES("RMSNormalization", since=23)
def rms_normalization(call: Call) -> RuleResult:
    """Normalise over `axis` and all later axes. float16 is computed in float32, as ONNX defines it."""
    axes = [*range(call.axis(call.rank()), call.rank())]
    dtype = call.dtype()
    y = as_dtype(_widened(call).rms_norm(axes=axes, eps=call.attrs["epsilon"]), _wide(dtype), dtype)
    return as_dtype(y, dtype, call.dtype(1)).mul(call.node(1)) if call.dtype(1) != dtype else y.mul(call.node(1))


def _wide(dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def _widened(call: Call) -> Node:
    return as_dtype(call.node(), call.dtype(), _wide(call.dtype()))


@RULES("LRN")
def lrn(call: Call) -> RuleResult:
    """Compute x / (bias + alpha / size · Σ x²)^beta, summed over neighbouring channels."""
    width = call.attrs["size"]
    if width < 1:
        raise Blocked(f"its size must be at least 1, not {width}")
    before = (width - 1) // 2
    channels, rank = call.shape()[1], call.rank()
    squares = call.node().square().pad([0, 0, before, width - 1 - before, *[0] * (2 * (rank - 2))])
    read = [squares.slice(starts=[0, first], stops=[TO_THE_END, first + channels]) for first in range(width)]
    total = call.graph.stack(*read, axis=0).sum(axes=[0]) if width > 1 else read[0]
    base = total.mul_scalar(call.attrs["alpha"] / width).add_scalar(call.attrs["bias"])
    return call.node().div(base.pow_scalar(call.attrs["beta"]))


@RULES("Dropout", since=7)
def dropout(call: Call) -> RuleResult:
    """Return the operand, unless dropout is active in training, which is refused."""
    training = call.has(2) and bool(call.static(2, "training mode"))
    ratio = float(call.static(1, "ratio").reshape(-1)[0]) if call.has(1) else call.attrs.get("ratio", 0.5)
    if training and ratio:
        raise Blocked("it is random in training", "export the model for inference, or pass the mask as an input")
    results: list[Node | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]] = [call.node().identity()]
    return [*results, np.ones(call.shape(), np.bool_)] if call.is_requested(1) else results
