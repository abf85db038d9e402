"""Other dtypes, and what is the same for a graph."""

from __future__ import annotations

from typing import Final

import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Said
from gradserve_client.jax.families.random_bits import drawn_of
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Value, unsendable

#: bits of exponent and of fraction, of the floats of the wire
_FORMATS: Final = {(5, 10): "float16", (8, 23): "float32", (11, 52): "float64"}


@RULES("copy", "device_put", "name", "optimization_barrier", "pvary", "sharding_constraint")
def as_they_are(call: Call) -> Said:
    """The operands as they are."""
    return [*call.operands]


@RULES("convert_element_type")
def convert_element_type(call: Call) -> Said:
    """`cast`, where the dtype is another. Of complex numbers in a real one, the real part."""
    value, wanted = call.operands[0], call.results[0].dtype
    if value.is_key or value.dtype == wanted:
        return value
    reason = unsendable(wanted)
    if reason is not None:
        raise Blocked(f"it gives {reason}")
    node = call.node()
    if value.is_complex and wanted.kind == "b":
        return node.not_equal(call.like(0))
    # to a real dtype, JAX takes the real part
    real = node.real() if value.is_complex and wanted.kind != "c" else node
    return real.cast(wanted.name)


@RULES("bitcast_convert_type")
def bitcast_convert_type(call: Call) -> Said:
    """Random bits as floats in [1, 2), which is how JAX draws; of no others."""
    drawn = drawn_of(call.operands[0])
    found = drawn.as_float(call.params["new_dtype"]) if drawn is not None else None
    if found is None:
        raise Blocked("it reads the bits of one dtype as another")
    return found


@RULES("reduce_precision")
def reduce_precision(call: Call) -> Said:
    """`cast` to a narrower float and back, of those that the wire has."""
    bits = int(call.params["exponent_bits"]), int(call.params["mantissa_bits"])
    narrow = _FORMATS.get(bits)
    if narrow is None:
        raise Blocked(f"it rounds to {bits[0]} bits of exponent and {bits[1]} of fraction, which no dtype has")
    if np.dtype(narrow).itemsize >= call.dtype().itemsize:
        return Value(call.shape(), call.dtype(), node=call.node())
    return call.node().cast(narrow).cast(call.dtype().name)
