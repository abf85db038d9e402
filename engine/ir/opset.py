"""Versions of the opset.

A graph states its version, and may use the ops, attributes and dtypes of that and older ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from engine.ir.errors import BadAttribute, DtypeMismatch, UnknownOp
from engine.ir.tensor_type import element_type

#: default version of a graph
OPSET: Final = 1
#: newest version
LATEST: Final = 2


def admit_op(name: str, since: int, opset: int) -> None:
    """Raise UnknownOp for an op newer than `opset`."""
    if since > opset:
        raise UnknownOp(
            f"{name} is an op since opset {since}: say {_field(since)} in the graph, which is of opset {opset}",
            expected=f"an op of opset {opset}",
            got=name,
        )


def admit_attribute(name: str, since: int, opset: int) -> None:
    """Raise BadAttribute for an attribute newer than `opset`."""
    if since > opset:
        raise BadAttribute(
            f"{name} is an attribute since opset {since}: say {_field(since)} in the graph, which is of opset {opset}",
            expected=f"an attribute of opset {opset}",
            got=name,
        )


def admit_dtype(noun: str, dtype: np.dtype[Any], opset: int) -> None:
    """Raise DtypeMismatch for a dtype newer than `opset`; `noun` names what has that dtype."""
    element = element_type(dtype)
    if element is not None and element.since > opset:
        raise DtypeMismatch(
            f"{noun} is {element.name}, a dtype since opset {element.since}: say {_field(element.since)} in the graph, "
            f"which is of opset {opset}",
            expected=f"a dtype of opset {opset}",
            got=element.name,
        )


def _field(opset: int) -> str:
    return f'"opset": {opset}'
