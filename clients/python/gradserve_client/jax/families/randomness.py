"""Keys of threefry, and what is drawn of them."""

from __future__ import annotations

import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.importing.writing import size
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.random_bits import Drawn, each_key, marked
from gradserve_client.jax.families.table import RULES


@RULES("random_seed")
def random_seed(call: Call) -> Said:
    """`random_key` of one seed. Of 32 bits and less, the upper word is 0."""
    if call.rank():
        raise Blocked("it makes keys of several seeds", "make one key, and split it")
    seed = call.node().cast("int64")
    if call.dtype().itemsize < 8:
        seed = seed.mod(call.constant(2**32, np.int64))
    return seed.random_key()


@RULES("random_wrap")
def random_wrap(call: Call) -> Said:
    """The words as they are."""
    return call.node().identity()


@RULES("random_unwrap", "random_clone")
def random_unwrap(call: Call) -> Said:
    """The words as they are."""
    return call.node().identity()


@RULES("random_split")
def random_split(call: Call) -> Said:
    """`random_split`."""
    shape = tuple(int(extent) for extent in call.params["shape"])
    split = each_key(call.node(), call.shape(), (size(shape), 2), lambda key: key.random_split(size(shape)))
    return split if len(shape) == 1 else split.reshape(shape=[*call.shape(), *shape, 2])


@RULES("random_fold_in")
def random_fold_in(call: Call) -> Said:
    """`random_fold_in` of one key; of several, a `map`."""
    key, number = call.nodes
    if not call.rank() and not call.rank(1):
        return key.random_fold_in(number)
    shape = call.results[0].shape
    keys = key.broadcast_to(shape=[*shape, 2]).reshape(shape=[size(shape), 2])
    numbers = number.broadcast_to(shape=[*shape]).reshape(shape=[size(shape)])
    body = call.graph.function(lambda graph: graph.input().random_fold_in(graph.input()), "folded_in")
    return call.graph.map(keys, numbers, body=body, sequences=2).get_output(0).reshape(shape=[*shape, 2])


@RULES("random_bits")
def random_bits(call: Call) -> Said:
    """`random_bits` of 32 bits; those of 64 only on their way to become floats, as `random_uniform`."""
    shape, width = tuple(int(extent) for extent in call.params["shape"]), int(call.params["bit_width"])
    if width not in {32, 64}:
        raise Blocked(f"it draws {width} bits for each number", "draw float32, float64 or int32")
    drawn = Drawn(call.node(), call.shape(), shape, width)
    if width == 64:
        return marked(call, drawn)
    return marked(call, drawn, each_key(call.node(), call.shape(), shape, lambda key: key.random_bits([*shape])))
