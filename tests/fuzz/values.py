"""Numbers that kernels must handle: ordinary ones, and those at the edges of formats and kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from engine.ir.sample import Operand
from engine.ir.tensor_type import real_dtype

Array = np.ndarray[Any, Any]
Random = np.random.Generator
Mood = Literal["tame", "wide", "one", "some"]

#: moods for the numbers of a request, with their shares: within the op's domain; of all magnitudes; and with one or
#: some odd numbers
MOODS: Final[dict[Mood, float]] = {"tame": 0.4, "wide": 0.1, "one": 0.3, "some": 0.2}
#: special values that arithmetic must propagate
SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5)
#: arguments out of the range of kernels: sin, cos, lgamma, trigamma and mod fall back
OUT_OF_RANGE: Final = (2.0**19 + 1, 1e7, -1e7, 1.5 * 2.0**49, -1e22, -0.5, -2.5, -3.0, -170.25)
#: arguments at which exp, tanh, erf and the like saturate
SATURATING: Final = (-104.0, 89.0, -746.0, 710.0, 20.0, -20.0, 6.0, -6.0)


def choice(rng: Random, options: Any, weights: Any = None) -> Any:
    """Choose an element of a sequence, unchanged."""
    options = list(options)
    return options[rng.choice(len(options), p=weights)]


def mood(rng: Random) -> Mood:
    """A random mood for numbers."""
    drawn: Mood = choice(rng, MOODS, list(MOODS.values()))
    return drawn


def in_parts(array: Array) -> Array:
    """Complex numbers as floats with the two parts along a new last axis; other arrays unchanged."""
    return np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array


def of_parts(parts: Array, dtype: Any) -> Array:
    """Complex numbers from the result of `in_parts`."""
    array = np.empty(parts.shape[:-1], dtype)
    array.real, array.imag = parts[..., 0], parts[..., 1]
    return array


def numbers(rng: Random, operand: Operand, dtype: Any, how: Mood) -> Array:
    """Random numbers with the kind, shape and domain of `operand`, which hold for each part of complex numbers."""
    dtype = np.dtype(dtype)
    if operand.kind == "real" and dtype.kind == "c":
        plain = replace(operand, diagonal=0.0)
        parts = [numbers(rng, each, real_dtype(dtype), how) for each in (operand, plain)]
        return of_parts(np.stack(parts, axis=-1), dtype)
    if operand.kind != "real":
        drawn = operand.draw(rng)
        return indices(rng, drawn, operand) if operand.kind == "int" else drawn
    if dtype.kind in "iub":
        return whole_numbers(rng, operand.shape, dtype)
    array = operand.draw(rng, dtype.name)
    if operand.diagonal:
        return array  # a matrix that must be regular
    if how == "wide":
        magnitude = np.exp2(rng.uniform(-60, 60, operand.shape)) if rng.random() < 0.5 else 10 * np.ones(operand.shape)
        with np.errstate(over="ignore"):
            array = (array * magnitude).astype(dtype)
    elif how != "tame" and array.size:
        array = with_odd_ones(rng, array, 1 if how == "one" else int(rng.integers(2, 2 + min(array.size, 30))))
    return np.asarray(array)


def with_odd_ones(rng: Random, array: Array, count: int) -> Array:
    """Replace `count` elements by odd numbers: at the ends, where a vector or a tile ends, and anywhere."""
    array = np.array(array)
    odd, flat = odd_numbers(array.dtype), array.reshape(-1)
    for _ in range(count):
        ends = [0, flat.size - 1, flat.size // 8 * 8 - 1, flat.size // 16384 * 16384 - 1, flat.size // 4096 * 4096 - 1]
        place = choice(rng, ends) if rng.random() < 0.5 else int(rng.integers(flat.size))
        with np.errstate(over="ignore"):
            flat[place] = choice(rng, odd)
    return array


def odd_numbers(dtype: Any) -> list[float]:
    """The odd numbers of a dtype; arguments out of range are as frequent as all others."""
    info = np.finfo(dtype)
    edges = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal]
    return [*SPECIAL, *map(float, edges), *SATURATING, *OUT_OF_RANGE, *OUT_OF_RANGE]


def whole_numbers(rng: Random, shape: tuple[int, ...], dtype: Any) -> Array:
    """Small integers, sometimes with the smallest or largest one of the dtype."""
    array = np.asarray(rng.integers(0 if dtype.kind in "ub" else -5, 2 if dtype.kind == "b" else 6, shape)).astype(
        dtype
    )
    if array.size and dtype.kind != "b" and rng.random() < 0.2:
        array = np.array(array)
        array.reshape(-1)[int(rng.integers(array.size))] = choice(rng, [np.iinfo(dtype).min, np.iinfo(dtype).max])
    return array


def indices(rng: Random, drawn: Array, operand: Operand) -> Array:
    """Indices of 32 or 64 bits, with the first or the last one, and sometimes one out of range."""
    fits = operand.high <= 2**31
    drawn = np.asarray(drawn, choice(rng, ["int64", "int64", "int32"] if fits else ["int64"]))
    if drawn.size and rng.random() < 0.3:
        drawn.reshape(-1)[-1] = choice(rng, [operand.low, operand.high - 1])
    if drawn.size and rng.random() < 0.04:
        far = [operand.high, -1, -operand.high - 1, 2**31 - 1]
        drawn.reshape(-1)[int(rng.integers(drawn.size))] = choice(rng, far)
    return drawn
