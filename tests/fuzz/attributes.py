"""Random attributes of a node: by name, which means the same in every op, or as in samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from engine.ir.attributes import Attr
from engine.ir.op import Definition
from engine.ir.sample import Sample
from engine.ir.tensor_type import DTYPES
from tests.fuzz.values import Random, choice

Shape = Sequence[int]
#: sizes and steps beyond those of any array
HUGE: Final = (2**31, 2**57, 2**62, 2**63 - 1, -(2**31), -(2**63))


def drawn_attributes(
    rng: Random, op: Definition, sample: Sample, shape: Shape, extents: Mapping[int, int], anew: bool
) -> dict[str, Any]:
    """The attributes of a sample, with renamed extents; with `anew`, some are drawn for this shape, or omitted."""
    attrs: dict[str, Any] = {}
    for name, attr in op.attrs.items():
        if name in sample.attrs and (not anew or rng.random() < 0.6):
            attrs[name] = _as_sampled(rng, sample.attrs[name], extents)
        elif anew and (attr.required or rng.random() < 0.5):
            drawn = _drawn(rng, name, attr, shape)
            attrs[name] = sample.attrs.get(name) if drawn is None else drawn
    return {name: value for name, value in attrs.items() if value is not None}


def _as_sampled(rng: Random, value: Any, extents: Mapping[int, int]) -> Any:
    if isinstance(value, bool | str | float) or rng.random() < 0.4:
        return value
    if isinstance(value, int):
        return extents.get(value, value)
    if isinstance(value, list | tuple):
        return [extents.get(each, each) for each in value]
    return value


def _drawn(rng: Random, name: str, attr: Attr, shape: Shape) -> Any:
    """A random value of the attribute; None if only its samples show valid values."""
    by_name = _BY_NAME.get(name)
    value = by_name(rng, shape) if by_name is not None else _by_kind(attr)(rng, attr, shape)
    if value is None or attr.kind not in ("int", "ints") or rng.random() > 0.08:
        return value
    huge = choice(rng, HUGE)
    return huge if attr.kind == "int" else [huge if rng.random() < 0.5 else each for each in value] or [huge]


def _small(rng: Random) -> int:
    return int(choice(rng, [-2, -1, 0, 0, 1, 1, 2, 3, 4, 7, 8, 9]))


def _axis(rng: Random, shape: Shape) -> int:
    return int(rng.integers(-len(shape), len(shape))) if shape else 0


def _axes(rng: Random, shape: Shape) -> list[int]:
    """Some or all axes, in random order, a few of them negative."""
    count = len(shape) if rng.random() < 0.5 else int(rng.integers(0, len(shape) + 1))
    return [int(a) - len(shape) * int(rng.random() < 0.2) for a in rng.permutation(len(shape))[:count]]


def _starts(rng: Random, shape: Shape) -> list[int]:
    return [int(rng.integers(0, extent // 2 + 1)) for extent in shape]


def _stops(rng: Random, shape: Shape) -> list[int]:
    return [int(rng.integers(extent // 2, extent + 1)) for extent in shape]


def _steps(rng: Random, shape: Shape) -> list[int]:
    return [int(choice(rng, [1, 1, 2, 3, 7])) for _ in shape]


def _new_shape(rng: Random, shape: Shape) -> list[int]:
    """A shape with merged, split, reversed or added axes."""
    options = [[-1], [1, *shape], [*shape[::-1]], [*shape, 1], [2, *shape], [-1, *shape[1:]], [8, -1], [-1, 4]]
    return [int(extent) for extent in choice(rng, options)]


def _pads(rng: Random, shape: Shape) -> list[int]:
    return [int(choice(rng, [0, 0, 1, 2, 7])) for _ in range(2 * len(shape))]


def _shifts(rng: Random, shape: Shape) -> list[int]:
    return [_small(rng) for _ in shape[: int(rng.integers(0, len(shape) + 1))]]


def _sizes(rng: Random, shape: Shape) -> list[int]:
    extent = shape[0] if shape else 1
    cut = int(rng.integers(0, extent + 1))
    return [cut, extent - cut]


def _indices(rng: Random, shape: Shape) -> list[int]:
    extent = shape[0] if shape else 1
    return [int(i) for i in rng.integers(0, max(1, extent), int(rng.integers(0, 9)))]


#: generators by the name of an attribute; others are drawn by kind
_BY_NAME: Final[Mapping[str, Callable[[Random, Shape], Any]]] = {
    "axis": _axis, "axes": _axes, "starts": _starts, "stops": _stops, "steps": _steps, "shape": _new_shape,
    "pad_width": _pads, "shifts": _shifts, "sizes": _sizes, "indices": _indices,
    "repeats": lambda rng, shape: [int(choice(rng, [1, 1, 2, 3])) for _ in shape],
    "original_shape": lambda rng, shape: None,
    "equation": lambda rng, shape: None,
    "eps": lambda rng, shape: float(choice(rng, [1e-5, 1e-3, 0.1])),
}  # fmt: skip


def _ints(rng: Random, attr: Attr, shape: Shape) -> list[int]:
    """Integers, as many as images or volumes need, or one per axis."""
    count = choice(rng, [1, 2, 2, 3, len(shape)])
    return [max(attr.minimum or 0, _small(rng)) for _ in range(count)]


def _number(rng: Random) -> float:
    return float(choice(rng, [0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -2.0, 1e-5, 1e6, -0.0]))


_BY_KIND: Final[Mapping[str, Callable[[Random, Attr, Shape], Any]]] = {
    "int": lambda rng, attr, shape: max(attr.minimum if attr.minimum is not None else -9, _small(rng)),
    "float": lambda rng, attr, shape: _number(rng),
    "number": lambda rng, attr, shape: _number(rng),
    "bool": lambda rng, attr, shape: bool(rng.random() < 0.5),
    "string": lambda rng, attr, shape: choice(rng, attr.choices) if attr.choices else None,
    "ints": _ints,
    "dtype": lambda rng, attr, shape: choice(rng, DTYPES),
    "tensor": lambda rng, attr, shape: np.asarray(rng.uniform(-2, 2, choice(rng, [(), (1,), tuple(shape[-1:])]))),
}


def _by_kind(attr: Attr) -> Callable[[Random, Attr, Shape], Any]:
    """The generator for the attribute's kind; unknown kinds use the samples of their definition."""
    return _BY_KIND.get(attr.kind) or (lambda rng, attr, shape: choice(rng, attr.definition.samples))
