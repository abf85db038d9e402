"""Threefry keys and random bits."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.random_bits import RandomBits, draw_per_key, with_marker
from gradserve_client.jax.families.table import RULES


@RULES("random_seed")
def random_seed(call: Call) -> Results:
    """`random_key` of one seed. For seeds of up to 32 bits, the upper word is 0."""
    if call.rank():
        raise Blocked("it makes keys from several seeds", "make one key, and split it")
    seed = call.node().cast("int64")
    if call.dtype().itemsize < 8:
        seed = seed.mod(call.constant(2**32, np.int64))
    return seed.random_key()


@RULES("random_wrap")
def random_wrap(call: Call) -> Results:
    """The words unchanged."""
    return call.node().identity()


@RULES("random_unwrap", "random_clone")
def random_unwrap(call: Call) -> Results:
    """The words unchanged."""
    return call.node().identity()


@RULES("random_split")
def random_split(call: Call) -> Results:
    """`random_split`."""
    shape = tuple(int(extent) for extent in call.params["shape"])
    split = draw_per_key(call.node(), call.shape(), (size(shape), 2), lambda key: key.random_split(size(shape)))
    return split if len(shape) == 1 else split.reshape(shape=[*call.shape(), *shape, 2])


@RULES("random_fold_in")
def random_fold_in(call: Call) -> Results:
    """`random_fold_in`; for several keys, in a `map`."""
    key, number = call.nodes
    if not call.rank() and not call.rank(1):
        return key.random_fold_in(number)
    shape = call.results[0].shape
    keys = key.broadcast_to(shape=[*shape, 2]).reshape(shape=[size(shape), 2])
    numbers = number.broadcast_to(shape=[*shape]).reshape(shape=[size(shape)])
    body = call.graph.function(lambda graph: graph.input().random_fold_in(graph.input()), "folded_in")
    return call.graph.map(keys, numbers, body=body, sequences=2).get_output(0).reshape(shape=[*shape, 2])


@RULES("random_bits")
def random_bits(call: Call) -> Results:
    """`random_bits` of 32 bits. Bits that become floats are `random_uniform`; 64 bits are supported only for that."""
    shape, width = tuple(int(extent) for extent in call.params["shape"]), int(call.params["bit_width"])
    if width not in {32, 64}:
        raise Blocked(f"it draws {width} bits for each number", "draw float32, float64 or int32")
    bits = RandomBits(call.node(), call.shape(), shape, width)
    if width == 64:
        return with_marker(call, bits)
    return with_marker(
        call, bits, draw_per_key(call.node(), call.shape(), shape, lambda key: key.random_bits([*shape]))
    )
