"""Every op of the catalogue at a large size, float32: its values, beside PyTorch's where it has the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.problems.equivalents import EQUIVALENTS
from benchmarks.workload import Array, Question, Workload
from engine import registry
from engine.ir.sample import Bools, Ints, Real, Sample, Words

EDGE: Final = 1024
#: samples that say "elementwise": these extents become large ones
_GROWN: Final = {(2, 3): (EDGE, EDGE), (3,): (EDGE,)}
_GRID: Final = Real(EDGE, EDGE)
_ROWS: Final = Ints(EDGE, high=EDGE)
_CELLS: Final = Ints(EDGE, EDGE, high=EDGE)
_IMAGES: Final = Real(16, 32, 32, 32)
_ROWS_OF_CHANNELS: Final = Real(16, 32, 1024)
_VOLUMES: Final = Real(4, 8, 16, 16, 16)
_KEY: Final = Words(2)
_REGULAR: Final = Real(256, 256, diagonal=600)

#: what has shapes among its attributes, costs more than its elements, or is of matrices
LARGE: Final[dict[str, Sample]] = {
    "adaptive_avg_pool": Sample(_IMAGES, sizes=[10, 12]),
    "adaptive_max_pool": Sample(_IMAGES, sizes=[10, 12]),
    "all": Sample(Bools(EDGE, EDGE)),
    "any": Sample(Bools(EDGE, EDGE)),
    "arange": Sample(stop=float(EDGE * EDGE)),
    "argmax": Sample(_GRID, axis=-1),
    "argmin": Sample(_GRID, axis=-1),
    "argsort": Sample(_GRID, axis=-1),
    "attention": Sample(Real(8, 256, 64), Real(8, 256, 64), Real(8, 256, 64)),
    "avg_pool1d": Sample(_ROWS_OF_CHANNELS, kernel_size=[2]),
    "avg_pool2d": Sample(_IMAGES, kernel_size=[2, 2]),
    "avg_pool3d": Sample(_VOLUMES, kernel_size=[2, 2, 2]),
    "batch_norm": Sample(Real(4096, 256)),
    "batch_norm_given": Sample(Real(4096, 256), Real(256), Real(256, low=0.5)),
    "batch_norm_running": Sample(Real(4096, 256), Real(256), Real(256, low=0.5)),
    "bce_with_logits": Sample(_GRID, Real(EDGE, EDGE, low=0.0, high=1.0)),
    "broadcast_to": Sample(Real(EDGE), shape=[EDGE, EDGE]),
    "cat": Sample(_GRID, _GRID, axis=0),
    "cdist": Sample(Real(512, 32), Real(512, 32)),
    "cholesky": Sample(_REGULAR),
    "chunk": Sample(_GRID, chunks=2),
    "compress": Sample(_GRID, Bools(EDGE), k=EDGE // 2),
    "cond_number": Sample(_REGULAR),
    "constant": Sample(value=np.ones((EDGE, EDGE), "float32")),
    "conv1d": Sample(Real(16, 32, 1024), Real(32, 32, 3), padding=[1]),
    "conv2d": Sample(_IMAGES, Real(32, 32, 3, 3), padding=[1, 1]),
    "conv3d": Sample(_VOLUMES, Real(8, 8, 3, 3, 3), padding=[1, 1, 1]),
    "conv_transpose1d": Sample(_ROWS_OF_CHANNELS, Real(32, 32, 3), stride=[2]),
    "conv_transpose2d": Sample(_IMAGES, Real(32, 32, 3, 3), stride=[2, 2]),
    "conv_transpose3d": Sample(_VOLUMES, Real(8, 8, 3, 3, 3)),
    "cross_entropy": Sample(Real(4096, 256), Ints(4096, high=256)),
    "cumlogsumexp": Sample(_GRID, axis=-1),
    "cummax": Sample(_GRID, axis=-1),
    "cummin": Sample(_GRID, axis=-1),
    "cumprod": Sample(Real(EDGE, EDGE, low=0.9, high=1.1), axis=-1),
    "cumsum": Sample(_GRID, axis=-1),
    "det": Sample(Real(256, 256, low=-0.001, high=0.001, diagonal=1)),
    "diag": Sample(_GRID),
    "eigh": Sample(_REGULAR),
    "einsum": Sample(Real(16, 128, 128), Real(16, 128, 128), equation="bij,bkj->bik"),
    "embedding": Sample(_GRID, _ROWS),
    "fft": Sample(Real(64, 4096)),
    "full": Sample(shape=[EDGE, EDGE], fill=1.5),
    "gather": Sample(_GRID, _CELLS),
    "group_norm": Sample(_IMAGES, groups=8),
    "ifft": Sample(Real(64, 4096)),
    "index": Sample(_GRID, _ROWS, _ROWS),
    "index_add": Sample(_GRID, _ROWS, _ROWS, Real(EDGE)),
    "index_set": Sample(_GRID, _ROWS, _ROWS, Real(EDGE)),
    "inv": Sample(_REGULAR),
    "irfft": Sample(Real(64, 2049)),
    "layer_norm": Sample(Real(4096, 1024), Real(1024), Real(1024)),
    "linear": Sample(Real(512, 512), Real(512, 512), Real(512)),
    "log_softmax": Sample(Real(4096, 1024)),
    "lstsq": Sample(Real(512, 128), Real(512)),
    "lu": Sample(_REGULAR),
    "map_lookup": Sample(Real(4 * EDGE, EDGE), key_index=1, total_keys=4),
    "matmul": Sample(Real(512, 512), Real(512, 512)),
    "matrix_exp": Sample(Real(256, 16, 16)),
    "matrix_power": Sample(Real(256, 256, low=-0.05, high=0.05), k=5),
    "matrix_rank": Sample(_REGULAR),
    "max_pool1d": Sample(_ROWS_OF_CHANNELS, kernel_size=[2]),
    "max_pool2d": Sample(_IMAGES, kernel_size=[2, 2]),
    "max_pool2d_back": Sample(Real(16, 32, 16, 16), _IMAGES, kernel_size=[2, 2]),
    "max_pool2d_indices": Sample(_IMAGES, kernel_size=[2, 2]),
    "max_pool3d": Sample(_VOLUMES, kernel_size=[2, 2, 2]),
    "mlp_layer": Sample(Real(512, 512), Real(512, 512), Real(512)),
    "nonzero": Sample(Bools(EDGE, EDGE), k=EDGE * EDGE // 2),
    "one_hot": Sample(Ints(4096, high=256), classes=256),
    "pad": Sample(_GRID, pad_width=[1, 1, 1, 1]),
    "pinv": Sample(Real(512, 128)),
    "polygamma": Sample(Real(256, 256, low=0.5, high=4.0), order=1),
    "pow_scalar": Sample(Real(EDGE, EDGE, low=0.5), exponent=2.5),
    "prod": Sample(Real(EDGE, EDGE, low=0.9, high=1.1), axes=[-1]),
    "qr": Sample(_REGULAR),
    "random_bernoulli": Sample(_KEY, Real(EDGE, EDGE, low=0.0, high=1.0)),
    "random_bits": Sample(_KEY, shape=[EDGE, EDGE]),
    "random_categorical": Sample(_KEY, _GRID),
    "random_exponential": Sample(_KEY, shape=[EDGE, EDGE], dtype="float32"),
    "random_gumbel": Sample(_KEY, shape=[EDGE, EDGE], dtype="float32"),
    "random_normal": Sample(_KEY, shape=[EDGE, EDGE], dtype="float32"),
    "random_permutation": Sample(_KEY, k=EDGE * EDGE),
    "random_split": Sample(_KEY, k=EDGE * EDGE),
    "random_uniform": Sample(_KEY, shape=[EDGE, EDGE], dtype="float32"),
    "reshape": Sample(_GRID, shape=[-1]),
    "resize": Sample(_IMAGES, sizes=[64, 48]),
    "rfft": Sample(Real(64, 4096)),
    "rms_norm": Sample(Real(4096, 1024), Real(1024)),
    "roll": Sample(_GRID, shifts=[3], axes=[-1]),
    "scatter_add": Sample(_GRID, _CELLS, _GRID),
    "segment_max": Sample(_GRID, Ints(EDGE, high=64), segments=64),
    "segment_mean": Sample(_GRID, Ints(EDGE, high=64), segments=64),
    "segment_min": Sample(_GRID, Ints(EDGE, high=64), segments=64),
    "segment_prod": Sample(Real(EDGE, EDGE, low=0.9, high=1.1), Ints(EDGE, high=64), segments=64),
    "segment_sum": Sample(_GRID, Ints(EDGE, high=64), segments=64),
    "select": Sample(_GRID, index=1, axis=1),
    "slice": Sample(_GRID, starts=[1, 1]),
    "slice_at": Sample(_GRID, Ints(2, high=EDGE), sizes=[512, 512]),
    "slogdet": Sample(_REGULAR),
    "softmax": Sample(Real(4096, 1024)),
    "solve": Sample(_REGULAR, Real(256, 256)),
    "sort": Sample(_GRID, axis=-1),
    "split": Sample(_GRID, sizes=[EDGE // 2, EDGE // 2]),
    "squeeze": Sample(Real(1, EDGE, EDGE)),
    "stack": Sample(_GRID, _GRID, axis=0),
    "stft": Sample(Real(8, 1 << 14), Real(512), stride=[128]),
    "struct_field": Sample(Real(4 * EDGE, EDGE), field_index=1, total_fields=4),
    "svd": Sample(_REGULAR),
    "symmetric_function": Sample(_REGULAR, function="sqrt"),
    "take_along": Sample(_GRID, _CELLS, axis=-1),
    "tile": Sample(_GRID, repeats=[2, 2]),
    "topk": Sample(_GRID, k=16),
    "triangular_solve": Sample(_REGULAR, Real(256, 256)),
    "tril": Sample(_GRID),
    "triu": Sample(_GRID),
    "update_slice": Sample(_GRID, Real(512, 512), starts=[256, 256]),
    "update_slice_at": Sample(_GRID, Real(512, 512), Ints(2, high=EDGE)),
}
#: how many results those have that have several
RESULTS: Final = {
    "batch_norm_running": 3,
    "chunk": 2,
    "compress": 2,
    "eigh": 2,
    "lu": 3,
    "nonzero": 2,
    "qr": 2,
    "slogdet": 2,
    "split": 2,
    "svd": 3,
    "topk": 2,
}
#: leaves, what reads one of several results, what is a transform, and what makes one key
ABSENT: Final = ("input", "parameter", "get_output", "grad", "random_fold_in", "random_key")


def large(op: str) -> Sample:
    """One use of an op at a large size. Raises KeyError for one that has none: state it in `LARGE`."""
    if op in LARGE:
        return LARGE[op]
    sample = registry().ops[op].samples[0]
    return Sample(*(replace(operand, shape=_GROWN[operand.shape]) for operand in sample.operands), **sample.attrs)


def of_op(op: str) -> Workload:
    """Its values."""
    sample, rng = large(op), np.random.default_rng(0)
    arrays: list[Array] = [operand.draw(rng, "float32") for operand in sample.operands]
    sizes = ", ".join("×".join(map(str, a.shape)) for a in arrays)
    theirs = EQUIVALENTS.get(op)
    alone = "" if theirs else "has no function of its own for this"
    return Workload(
        f"op-{op}",
        f"{op}({sizes})",
        partial(_ours, op, sample),
        [],
        arrays,
        Question.VALUES,
        written={"torch": theirs} if theirs else {},
        without={"torch": alone} if alone else {},
        sides=("gradserve", "torch"),
    )


def _ours(op: str, sample: Sample, ops: Any, *operands: Any) -> Any:
    result = ops.append(op, *operands[: len(sample.operands)], **sample.attrs)
    return [ops.get_output(result, index=i) for i in range(RESULTS[op])] if op in RESULTS else result


def names() -> list[str]:
    """The ops that have a row."""
    return [name for name, op in registry().ops.items() if name not in ABSENT and not op.functions]


OPS: Final[dict[str, Callable[[], Workload]]] = {f"op-{name}": partial(of_op, name) for name in names()}
