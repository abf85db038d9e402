"""The engine's functions in the peers' words: their own composite wherever they have one.

A function that a library lacks is absent, and a workload that needs it is not asked of that library.
"""

from __future__ import annotations

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

from benchmarks.vocabularies_of_matrices import jax_words, torch_words
from benchmarks.workload import Unsupported

#: functions of which all three have one of this name
ELEMENTWISE = ("exp", "log", "tanh", "sin", "cos", "sqrt", "square", "maximum", "minimum", "abs", "matmul")


class Vocabulary(SimpleNamespace):
    """Functions by name. Raises Unsupported for one that there is not."""

    def __getattr__(self, name: str) -> NoReturn:
        raise Unsupported(f"has no {name}")


def torch_ops() -> Vocabulary:
    """PyTorch's."""
    import torch  # noqa: PLC0415 - a peer, where installed
    from torch.nn import functional  # noqa: PLC0415

    def total(x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.sum() if axes is None else x.sum(axes, keepdim=keepdims)

    def mean(x: Any, axes: Any = None, keepdims: bool = False) -> Any:
        return x.mean() if axes is None else x.mean(axes, keepdim=keepdims)

    named = {name: getattr(torch, name) for name in ELEMENTWISE}
    return looping(
        **named,
        **torch_words(),
        less=torch.less,
        where=torch.where,
        clamp=torch.clamp,
        select=lambda x, index: x[index],
        sum=total,
        mean=mean,
        relu=torch.relu,
        sigmoid=torch.sigmoid,
        erf=torch.erf,
        cross=torch.linalg.cross,
        max=lambda x, axes, keepdims=False: x.amax(axes, keepdim=keepdims),
        logsumexp=lambda x, axes: torch.logsumexp(x, axes),  # noqa: PLW0108 - names its operand
        softmax=lambda x: torch.softmax(x, -1),
        reshape=lambda x, shape: x.reshape(shape),
        transpose=lambda x, axes: x.permute(axes),
        slice=_sliced,
        cat=lambda *parts, axis: torch.cat(parts, axis),
        stack=lambda *parts, axis: torch.stack(parts, axis),
        gather=lambda x, index: x[index],
        layer_norm=lambda x, weight, bias: functional.layer_norm(x, x.shape[-1:], weight, bias),
        gelu=lambda x, approximate="none": functional.gelu(x, approximate=approximate),
        attention=functional.scaled_dot_product_attention,
        conv2d=functional.conv2d,
        batch_norm=lambda x, weight, bias: functional.batch_norm(x, None, None, weight, bias, training=True),
        max_pool2d=functional.max_pool2d,
        cross_entropy=functional.cross_entropy,
    )


def _sliced(x: Any, starts: Any, stops: Any) -> Any:
    return x[tuple(slice(start, stop) for start, stop in zip(starts, stops, strict=True))]


def jax_ops() -> Vocabulary:
    """JAX's, and where it has none, what its users write."""
    import jax  # noqa: PLC0415 - a peer, where installed
    import jax.numpy as jnp  # noqa: PLC0415

    def cross_entropy(logits: Any, targets: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[:, None], 1).mean()

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
        return jax.nn.softmax(scores) @ v

    def conv2d(x: Any, kernel: Any, bias: Any = None, stride: Any = (1, 1), padding: Any = (0, 0)) -> Any:
        y = jax.lax.conv_general_dilated(x, kernel, stride, [(p, p) for p in padding])
        return y if bias is None else y + bias[:, None, None]

    def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
        over = (0, *range(2, x.ndim))
        return jax.nn.standardize(x, over, epsilon=1e-5) * weight[:, None, None] + bias[:, None, None]

    ops = Vocabulary(
        **numpy_like(jnp),
        **jax_words(),
        random_key=jax.random.PRNGKey,
        random_split=lambda key, k: jax.random.split(key, num=k),
        random_normal=jax.random.normal,
        random_uniform=jax.random.uniform,
        relu=jax.nn.relu,
        sigmoid=jax.nn.sigmoid,
        erf=jax.scipy.special.erf,
        cross=jnp.cross,
        logsumexp=lambda x, axes: jax.scipy.special.logsumexp(x, tuple(axes)),
        softmax=jax.nn.softmax,
        gelu=lambda x, approximate="none": jax.nn.gelu(x, approximate=approximate != "none"),
        layer_norm=lambda x, weight, bias: jax.nn.standardize(x, epsilon=1e-5) * weight + bias,
        attention=attention,
        conv2d=conv2d,
        batch_norm=batch_norm,
        max_pool2d=partial(_jax_pool, jax),
        cross_entropy=cross_entropy,
    )
    vars(ops).update(_jax_loops(ops))
    return ops


def _jax_loops(ops: Vocabulary) -> dict[str, Any]:
    """As structured control flow. A `while_loop` has no way back: for gradients a `bounded_loop` scans."""
    import jax  # noqa: PLC0415 - a peer, where installed

    def scan(step: Any, consts: Any, carries: Any, sequences: Any = (), length: Any = None) -> Any:
        def body(carries: Any, entries: Any) -> Any:
            after, stacked = step(ops, consts, carries, entries)
            return tuple(after), tuple(stacked)

        return jax.lax.scan(body, tuple(carries), tuple(sequences), length)

    def while_loop(condition: Any, step: Any, consts: Any, carries: Any, max_steps: Any) -> Any:
        def goes_on(state: Any) -> Any:
            return (state[0] < max_steps) & condition(ops, consts, state[1])

        def body(state: Any) -> Any:
            return state[0] + 1, tuple(step(ops, consts, state[1]))

        return jax.lax.while_loop(goes_on, body, (0, tuple(carries)))[1]

    def bounded_loop(condition: Any, step: Any, consts: Any, carries: Any, max_steps: Any) -> Any:
        def body(carries: Any, _: Any) -> Any:
            runs = condition(ops, consts, carries)
            return jax.lax.cond(runs, lambda ys: tuple(step(ops, consts, ys)), lambda ys: ys, carries), None

        return jax.lax.scan(body, tuple(carries), None, max_steps)[0]

    def checkpoint(step: Any) -> Any:
        return lambda ops, *operands: jax.checkpoint(partial(step, ops), prevent_cse=False)(*operands)

    return {"scan": scan, "while_loop": while_loop, "bounded_loop": bounded_loop, "checkpoint": checkpoint}


def looping(**functions: Any) -> Vocabulary:
    """With loops of Python, for a library that runs each op where it is called."""
    ops = Vocabulary(**functions)

    def scan(step: Any, consts: Any, carries: Any, sequences: Any = (), length: Any = None) -> Any:
        rows = []
        for t in range(len(sequences[0]) if length is None else length):
            carries, stacked = step(ops, consts, carries, [each[t] for each in sequences])
            rows.append(stacked)
        return carries, [ops.stack(*column, axis=0) for column in zip(*rows, strict=True)]

    def while_loop(condition: Any, step: Any, consts: Any, carries: Any, max_steps: Any) -> Any:
        for _ in range(max_steps):
            if not condition(ops, consts, carries):
                break
            carries = step(ops, consts, carries)
        return carries

    vars(ops).update(scan=scan, while_loop=while_loop)
    return ops


def _jax_pool(jax: Any, x: Any, kernel_size: Any, stride: Any = None, padding: Any = (0, 0)) -> Any:
    steps, around = (1, 1, *(stride or kernel_size)), [(0, 0), (0, 0), *((p, p) for p in padding)]
    return jax.lax.reduce_window(x, -math.inf, jax.lax.max, (1, 1, *kernel_size), steps, around)


def autograd_ops() -> Vocabulary:
    """HIPS autograd's: NumPy's, and sigmoid and cross-entropy written in them."""
    import autograd.numpy as anp  # noqa: PLC0415 - a peer, where installed
    from autograd.scipy.special import erf, logsumexp  # noqa: PLC0415

    def softmax(x: Any) -> Any:
        powers = anp.exp(x - anp.max(x, -1, keepdims=True))
        return powers / anp.sum(powers, -1, keepdims=True)

    def cross_entropy(logits: Any, targets: Any) -> Any:
        picked = logits[anp.arange(len(targets)), targets]
        return anp.mean(logsumexp(logits, axis=1) - picked)

    return Vocabulary(
        **numpy_like(anp),
        relu=lambda x: anp.maximum(x, 0.0),
        sigmoid=lambda x: 0.5 * anp.tanh(0.5 * x) + 0.5,
        erf=erf,
        logsumexp=lambda x, axes: logsumexp(x, axis=tuple(axes)),
        softmax=softmax,
        cross_entropy=cross_entropy,
    )


def numpy_like(np: Any) -> dict[str, Any]:
    """What a module that looks like NumPy has."""
    return {name: getattr(np, name) for name in ELEMENTWISE} | {
        "sum": lambda x, axes=None, keepdims=False: np.sum(x, axis=axes and tuple(axes), keepdims=keepdims),
        "mean": lambda x, axes=None, keepdims=False: np.mean(x, axis=axes and tuple(axes), keepdims=keepdims),
        "max": lambda x, axes, keepdims=False: np.max(x, axis=tuple(axes), keepdims=keepdims),
        "reshape": lambda x, shape: np.reshape(x, shape),  # noqa: PLW0108 - some take no keyword
        "transpose": lambda x, axes: np.transpose(x, axes),  # noqa: PLW0108 - as before
        "slice": _sliced,
        "cat": lambda *parts, axis: np.concatenate(parts, axis),
        "stack": lambda *parts, axis: np.stack(parts, axis),
        "gather": lambda x, index: x[index],
        "select": lambda x, index: x[index],
        "clamp": lambda x, **ends: np.clip(x, ends["min"], ends["max"]),
        "less": np.less,
        "where": np.where,
    }
