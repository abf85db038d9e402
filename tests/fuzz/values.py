"""Numbers that kernels have to get right: ordinary ones, and those at the edges of formats and of kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np

from engine.ir.sample import Operand
from engine.ir.tensor_type import real_dtype

Array = np.ndarray[Any, Any]
Random = np.random.Generator
Mood = Literal["tame", "wide", "one", "some"]

#: how the numbers of a request are drawn, and how often: of the domain of its op; of all magnitudes; and with one odd
#: number among them, or some
MOODS: Final[dict[Mood, float]] = {"tame": 0.4, "wide": 0.1, "one": 0.3, "some": 0.2}
#: what arithmetic, and formulas made of it, have to pass on
SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5)
#: beyond what kernels are written for: sin, cos, lgamma, trigamma and mod have others to ask
OUT_OF_RANGE: Final = (2.0**19 + 1, 1e7, -1e7, 1.5 * 2.0**49, -1e22, -0.5, -2.5, -3.0, -170.25)
#: where exp, tanh, erf and their like are no more than a limit
SATURATING: Final = (-104.0, 89.0, -746.0, 710.0, 20.0, -20.0, 6.0, -6.0)


def choice(rng: Random, options: Any, weights: Any = None) -> Any:
    """One of a sequence, as it is."""
    options = list(options)
    return options[rng.choice(len(options), p=weights)]


def mood(rng: Random) -> Mood:
    """How numbers are to be drawn."""
    found: Mood = choice(rng, MOODS, list(MOODS.values()))
    return found


def in_parts(array: Array) -> Array:
    """Complex numbers as floats, the two parts along one more axis; all others as they are."""
    return np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array


def of_parts(parts: Array, dtype: Any) -> Array:
    """Complex numbers of what `in_parts` gives."""
    found = np.empty(parts.shape[:-1], dtype)
    found.real, found.imag = parts[..., 0], parts[..., 1]
    return found


def numbers(rng: Random, operand: Operand, dtype: Any, how: Mood) -> Array:
    """An operand of an op: its kind, shape and domain are those of `operand`, and of each part of complex numbers."""
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
        return array  # a matrix that is to be regular
    if how == "wide":
        magnitude = np.exp2(rng.uniform(-60, 60, operand.shape)) if rng.random() < 0.5 else 10 * np.ones(operand.shape)
        with np.errstate(over="ignore"):
            array = (array * magnitude).astype(dtype)
    elif how != "tame" and array.size:
        array = with_odd_ones(rng, array, 1 if how == "one" else int(rng.integers(2, 2 + min(array.size, 30))))
    return np.asarray(array)


def with_odd_ones(rng: Random, array: Array, count: int) -> Array:
    """So many of the elements changed: at the ends, where a vector or a tile ends, and anywhere."""
    array = np.array(array)
    odd, flat = odd_numbers(array.dtype), array.reshape(-1)
    for _ in range(count):
        ends = [0, flat.size - 1, flat.size // 8 * 8 - 1, flat.size // 16384 * 16384 - 1, flat.size // 4096 * 4096 - 1]
        place = choice(rng, ends) if rng.random() < 0.5 else int(rng.integers(flat.size))
        with np.errstate(over="ignore"):
            flat[place] = choice(rng, odd)
    return array


def odd_numbers(dtype: Any) -> list[float]:
    """Those of a dtype; what is out of range for kernels as often as all others."""
    info = np.finfo(dtype)
    edges = [info.max, info.min, info.tiny, -info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal]
    return [*SPECIAL, *map(float, edges), *SATURATING, *OUT_OF_RANGE, *OUT_OF_RANGE]


def whole_numbers(rng: Random, shape: tuple[int, ...], dtype: Any) -> Array:
    """Small ones, with the smallest and the largest of the dtype among them."""
    array = np.asarray(rng.integers(0 if dtype.kind in "ub" else -5, 2 if dtype.kind == "b" else 6, shape)).astype(
        dtype
    )
    if array.size and dtype.kind != "b" and rng.random() < 0.2:
        array = np.array(array)
        array.reshape(-1)[int(rng.integers(array.size))] = choice(rng, [np.iinfo(dtype).min, np.iinfo(dtype).max])
    return array


def indices(rng: Random, drawn: Array, operand: Operand) -> Array:
    """Of 32 or 64 bits; the first and last that there are, and now and then one that there is not."""
    fits = operand.high <= 2**31
    drawn = np.asarray(drawn, choice(rng, ["int64", "int64", "int32"] if fits else ["int64"]))
    if drawn.size and rng.random() < 0.3:
        drawn.reshape(-1)[-1] = choice(rng, [operand.low, operand.high - 1])
    if drawn.size and rng.random() < 0.04:
        far = [operand.high, -1, -operand.high - 1, 2**31 - 1]
        drawn.reshape(-1)[int(rng.integers(drawn.size))] = choice(rng, far)
    return drawn
