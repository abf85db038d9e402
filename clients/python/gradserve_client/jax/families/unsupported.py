"""Unsupported primitives and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NO_OP: Final = ("no op computes it", "")
_FACTORS: Final = ("no op computes these factors", "use cholesky, eigh, lu, qr or svd, if one of them suffices")
_DEVICES: Final = ("it uses several devices, but a graph runs on one", "import the function for one device")
_CALLBACK: Final = ("it calls back into Python", "return the values that the callback needs")
_STATE: Final = ("it changes memory in place", "return the new value")
_BITS: Final = ("it works on single bits, which no op reads", "")
_GENERATOR: Final = (
    "its numbers depend on the device and cannot be reproduced on another",
    "use jax.random with threefry keys",
)
_GENERAL: Final = ("it reduces with a custom function", "use sum, prod, max, min, any or all")
_ELSEWHERE: Final = ("it calls external code", "write it with jax.numpy")

#: the reason and a workaround
UNSUPPORTED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        (
            "approx_top_k",
            "igamma_grad_a",
            "random_gamma",
            "ragged_dot_general",
            "scaled_dot",
            "select_and_gather_add",
            "tridiagonal_solve",
        ),
        _NO_OP,
    ),
    **dict.fromkeys(
        (
            "cholesky_update",
            "eig",
            "geqp3",
            "geqrf",
            "hessenberg",
            "householder_product",
            "ormqr",
            "schur",
            "symmetric_product",
            "tridiagonal",
        ),
        _FACTORS,
    ),
    **dict.fromkeys(
        (
            "all_gather",
            "all_to_all",
            "axis_index",
            "pmax",
            "pmin",
            "ppermute",
            "psum",
            "ragged_all_to_all",
            "reduce_scatter",
            "shard_map",
        ),
        _DEVICES,
    ),
    **dict.fromkeys(("debug_callback", "debug_print", "io_callback", "pure_callback"), _CALLBACK),
    **dict.fromkeys(("addupdate", "freeze", "get", "new_ref", "swap"), _STATE),
    **dict.fromkeys(("clz", "mulhi", "nextafter"), _BITS),
    **dict.fromkeys(("philox2x32", "philox4x32", "rng_bit_generator", "rng_uniform"), _GENERATOR),
    **dict.fromkeys(("threefry2x32", "threefry4x32"), ("it applies threefry directly to counters", "use jax.random")),
    **dict.fromkeys(("reduce", "reduce_window", "select_and_scatter"), _GENERAL),
    **dict.fromkeys(
        ("after_all", "create_token", "dce_sink", "stage"), ("it orders effects, but a graph has none", "")
    ),
    **dict.fromkeys(("custom_partitioning", "ffi_call", "linear_call"), _ELSEWHERE),
}

#: unsupported primitives that JAX still evaluates during the import if their operands are constants
COMPUTED: Final = frozenset(
    op for op, reason in UNSUPPORTED.items() if reason in {_NO_OP, _FACTORS, _BITS} and op != "random_gamma"
)
