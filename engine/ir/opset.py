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
            f"the op {name} needs opset {since}: add {_field(since)} to the graph, which uses opset {opset}",
            expected=f"an op of opset {opset}",
            got=name,
        )


def admit_attribute(name: str, since: int, opset: int) -> None:
    """Raise BadAttribute for an attribute newer than `opset`."""
    if since > opset:
        raise BadAttribute(
            f"the attribute {name} needs opset {since}: add {_field(since)} to the graph, which uses opset {opset}",
            attribute=name,
            expected=f"an attribute of opset {opset}",
            got=name,
        )


def admit_dtype(noun: str, dtype: np.dtype[Any], opset: int, attribute: str | None = None) -> None:
    """Raise DtypeMismatch for a dtype newer than `opset`; `noun` names what has that dtype, perhaps an `attribute`."""
    element = element_type(dtype)
    if element is not None and element.since > opset:
        raise DtypeMismatch(
            f"{noun} is {element.name}, which needs opset {element.since}: add {_field(element.since)} to the graph, "
            f"which uses opset {opset}",
            attribute=attribute,
            expected=f"a dtype of opset {opset}",
            got=element.name,
        )


def _field(opset: int) -> str:
    return f'"opset": {opset}'
