"""Casts, and primitives that do not change values."""

from __future__ import annotations

from typing import Final

import numpy as np

from gradserve_client.importing import Blocked
from gradserve_client.jax.call import Call, Results
from gradserve_client.jax.families.random_bits import random_bits_of
from gradserve_client.jax.families.table import RULES
from gradserve_client.jax.values import Value, unsupported

#: supported float dtypes by bits of exponent and of fraction
_FORMATS: Final = {(5, 10): "float16", (8, 23): "float32", (11, 52): "float64"}


@RULES("copy", "device_put", "name", "optimization_barrier", "pvary", "sharding_constraint")
def unchanged(call: Call) -> Results:
    """The operands unchanged."""
    return [*call.operands]


@RULES("convert_element_type")
def convert_element_type(call: Call) -> Results:
    """`cast`, if the dtype changes. From complex to real, the real part."""
    value, dtype = call.operands[0], call.results[0].dtype
    if value.is_key or value.dtype == dtype:
        return value
    reason = unsupported(dtype)
    if reason is not None:
        raise Blocked(f"it returns {reason}")
    node = call.node()
    if value.is_complex and dtype.kind == "b":
        return node.not_equal(call.like(0))
    # to a real dtype, JAX takes the real part
    real = node.real() if value.is_complex and dtype.kind != "c" else node
    return real.cast(dtype.name)


@RULES("bitcast_convert_type")
def bitcast_convert_type(call: Call) -> Results:
    """Random bits as floats in [1, 2), which is how JAX draws floats. Other bits are unsupported."""
    bits = random_bits_of(call.operands[0])
    floats = bits.as_float(call.params["new_dtype"]) if bits is not None else None
    if floats is None:
        raise Blocked("it reinterprets the bits of one dtype as another")
    return floats


@RULES("reduce_precision")
def reduce_precision(call: Call) -> Results:
    """`cast` to a narrower supported float dtype and back."""
    bits = int(call.params["exponent_bits"]), int(call.params["mantissa_bits"])
    narrow = _FORMATS.get(bits)
    if narrow is None:
        raise Blocked(f"it rounds to {bits[0]} exponent bits and {bits[1]} fraction bits, which no dtype has")
    if np.dtype(narrow).itemsize >= call.dtype().itemsize:
        return Value(call.shape(), call.dtype(), node=call.node())
    return call.node().cast(narrow).cast(call.dtype().name)
