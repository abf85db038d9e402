"""x[key], and x[key] = v as a new node."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from gradserve_client.errors import InputError
from gradserve_client.recording.elementwise import add, equal, multiply, where
from gradserve_client.recording.emitting import BOOL, DEFAULT_INT, broadcast_shape, cast, constant, emit, lift
from gradserve_client.recording.manipulation import broadcast_to, moveaxis, permute_dims, reshape
from gradserve_client.recording.recorder import Traced
from gradserve_client.recording.searching import normalize_indices, take
from gradserve_client.tensors import Array

_UNKNOWN: Final = "how many elements a mask chooses is known only when the graph runs"
_MASK: Final = f"{_UNKNOWN}: choose with where(), or state how many with compress(mask, x, k)"


class Cut(NamedTuple):
    """What a slice or a number takes of an axis. `turned`: from the end to the front."""

    start: int
    stop: int
    step: int
    turned: bool
    kept: bool

    @property
    def extent(self) -> int:
        """How many positions."""
        return len(range(self.start, self.stop, self.step))


def getitem(x: Traced, key: Any) -> Traced:
    """The elements at a key: numbers, slices, None, Ellipsis, arrays of whole numbers, and tuples of these.

    Raises InputError for masks, but those that are known while recording.
    """
    parts = _parts(x, key)
    if not any(isinstance(part, Traced) for part in parts):
        return _basic(x, parts)
    return _advanced(x, parts)


def _parts(x: Traced, key: Any) -> list[Any]:
    """A key with one entry for each axis, and None for new ones; arrays are recorded ones."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    parts = [chosen for part in parts for chosen in (_positions(part) if _is_mask(part) else [part])]
    named = sum(part is not None and part is not Ellipsis for part in parts)
    if named > x.ndim:
        raise IndexError(f"{x.type_name} has {x.ndim} axes, and {named} are indexed")
    places = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise InputError("an index has one Ellipsis only")
    place = places[0] if places else len(parts)
    return parts[:place] + [slice(None)] * (x.ndim - named) + parts[place + 1 :]


def _part(part: Any) -> Any:
    if part is None or part is Ellipsis or isinstance(part, slice | Traced):
        return part
    if isinstance(part, int | np.integer) and not isinstance(part, bool):
        return int(part)
    if isinstance(part, list | np.ndarray | bool | np.bool_):
        return constant(part if np.size(part) else np.asarray(part, np.int64))
    raise InputError(f"{type(part).__name__} is nothing that an array is indexed by")


def _is_mask(part: Any) -> bool:
    return isinstance(part, Traced) and part.dtype == BOOL


def _positions(mask: Traced) -> list[Traced]:
    """The positions that a mask chooses, an array for each of its axes."""
    known = mask.recorder.known(mask)
    if known is None or not known.ndim:
        raise InputError(_MASK)
    return [constant(axis) for axis in np.nonzero(known)]


def _basic(x: Traced, parts: list[Any]) -> Traced:
    """By numbers, slices and new axes."""
    cuts = _cuts(x, parts)
    if any(each != _whole(extent) for each, extent in zip(cuts, x.shape, strict=True)):
        x = _cut(x, cuts)
    turned = [axis for axis, each in enumerate(cuts) if each.turned]
    if turned:
        x = emit("flip", [x], x.shape, x.dtype, axes=turned)
    kept = iter(cuts)
    shape = [1 if part is None else each.extent for part in parts for each in [_next(part, kept)] if each.kept]
    return reshape(x, shape)


def _next(part: Any, cuts: Any) -> Cut:
    cut: Cut = _whole(1) if part is None else next(cuts)
    return cut


def _whole(extent: int) -> Cut:
    return Cut(0, extent, 1, turned=False, kept=True)


def _cut(x: Traced, cuts: list[Cut]) -> Traced:
    starts, stops, steps = ([getattr(each, name) for each in cuts] for name in ("start", "stop", "step"))
    return emit("slice", [x], [each.extent for each in cuts], x.dtype, starts=starts, stops=stops, steps=steps)


def _cuts(x: Traced, parts: list[Any]) -> list[Cut]:
    """What is taken of each axis. Raises IndexError for a number beyond it."""
    named = [part for part in parts if part is not None]
    return [_cut_of(part, extent) for part, extent in zip(named, x.shape, strict=True)]


def _cut_of(part: Any, extent: int) -> Cut:
    if isinstance(part, int):
        if not -extent <= part < extent:
            raise IndexError(f"there is no position {part} on an axis of {extent}")
        return Cut(part % extent, part % extent + 1, 1, turned=False, kept=False)
    places = range(*part.indices(extent))
    if not places:
        return Cut(0, 0, 1, turned=False, kept=True)
    turned = places.step < 0
    places = places[::-1] if turned else places
    return Cut(places.start, places[-1] + 1, places.step, turned, kept=True)


def _advanced(x: Traced, parts: list[Any]) -> Traced:
    """By arrays of positions, beside which numbers are such, too: NumPy's rule says where their axes go."""
    places = [i for i, part in enumerate(parts) if isinstance(part, Traced | int)]
    basic = [slice(None) if i in places else part for i, part in enumerate(parts)]
    x = _basic(x, basic)
    indices = [normalize_indices(lift(parts[i]), x.shape[i]) for i in places]
    where_they_go = places[0] if places[-1] - places[0] == len(places) - 1 else 0
    if len(places) == 1:
        return take(x, indices[0], axis=places[0])
    rest = [i for i in range(x.ndim) if i not in places]
    extents = [x.shape[i] for i in places]
    flat = reshape(permute_dims(x, (*places, *rest)), (-1, *(x.shape[i] for i in rest)) if x.size else (0,))
    read = take(flat, _linear(indices, extents), axis=0)
    axes = tuple(range(read.ndim - len(rest)))
    return moveaxis(read, axes, tuple(where_they_go + i for i in axes)) if axes else read


def _linear(indices: list[Traced], extents: list[int]) -> Traced:
    """Positions on several axes as ones on the axis that these are merged into."""
    known = [index.recorder.known(index) for index in indices]
    if all(index is not None for index in known):
        arrays = np.broadcast_arrays(*(index for index in known if index is not None))
        return constant(np.asarray(np.ravel_multi_index(tuple(arrays), extents), np.int64))
    merged, *others = indices
    for index, extent in zip(others, extents[1:], strict=True):
        merged = add(multiply(merged, extent), index)
    return merged


def setitem(x: Traced, key: Any, value: Any) -> Traced:
    """x with other elements at a key, in x's dtype.

    Masks are of one element, or of x's shape. Of positions that name one place twice, the last counts.
    """
    new = cast(lift(value, x.dtype), x.dtype)
    if _is_mask(key) and x.recorder.known(key) is None:
        return _masked(x, key, new)
    parts = _parts(x, key)
    unknown = [i for i, part in enumerate(parts) if isinstance(part, Traced) and x.recorder.known(part) is None]
    if len(unknown) == 1 and _is_one_position(parts, unknown[0]):
        return _at_one_position(x, parts, unknown[0], new)
    if unknown:
        return _at_positions(x, parts, new)
    if any(isinstance(part, Traced) for part in parts):
        return _scattered(x, parts, new)
    cuts = _cuts(x, parts)
    if any(each.step > 1 or each.turned for each in cuts):
        return _scattered(x, parts, new)
    return _box(x, parts, cuts, new)


def _box(x: Traced, parts: list[Any], cuts: list[Cut], new: Traced) -> Traced:
    """Where the elements lie side by side."""
    shown = iter(cuts)
    shape = [1 if part is None else each.extent for part in parts for each in [_next(part, shown)] if each.kept]
    update = reshape(broadcast_to(_fitting(new, len(shape)), shape), [each.extent for each in cuts])
    return (
        emit("update_slice", [x, update], x.shape, x.dtype, starts=[each.start for each in cuts]) if x.ndim else update
    )


def _fitting(new: Traced, ndim: int) -> Traced:
    """Without leading axes of extent 1 that what it is assigned to lacks."""
    extra = new.ndim - ndim
    return reshape(new, new.shape[extra:]) if extra > 0 and set(new.shape[:extra]) == {1} else new


def _masked(x: Traced, mask: Traced, new: Traced) -> Traced:
    if mask.shape != x.shape[: mask.ndim]:
        raise InputError(f"a mask {mask.type_name} does not fit {x.type_name}")
    if new.ndim > x.ndim - mask.ndim:
        raise InputError(f"{_UNKNOWN}: choose with where(), or assign one element")
    return where(reshape(mask, mask.shape + (1,) * (x.ndim - mask.ndim)), new, x)


def _is_one_position(parts: list[Any], axis: int) -> bool:
    """Whether it is a single one along an axis, and all of the others are assigned to."""
    return not parts[axis].ndim and all(part == slice(None) for i, part in enumerate(parts) if i != axis)


def _at_one_position(x: Traced, parts: list[Any], axis: int, new: Traced) -> Traced:
    """Where the position along one axis is known only when the graph runs, and all of the others are assigned to."""
    place = normalize_indices(parts[axis], x.shape[axis])
    shape = [x.shape[axis] if i == axis else 1 for i in range(x.ndim)]
    chosen = equal(reshape(constant(np.arange(x.shape[axis])), shape), place)
    rest = [extent for i, extent in enumerate(x.shape) if i != axis]
    spread = reshape(broadcast_to(new, rest), [1 if i == axis else extent for i, extent in enumerate(x.shape)])
    return where(chosen, spread, x)


def _at_positions(x: Traced, parts: list[Any], new: Traced) -> Traced:
    """Where positions are known only when the graph runs: in the part that slices take, which then is assigned.

    Raises InputError for new axes among them.
    """
    if any(part is None for part in parts):
        raise InputError(
            "new axes and positions that are known only when the graph runs cannot be assigned to together"
        )
    places = [i for i, part in enumerate(parts) if isinstance(part, Traced | int)]
    taken = [slice(None) if i in places else part for i, part in enumerate(parts)]
    within = _basic(x, taken)
    indices = [lift(parts[i]) for i in places]
    for index in indices:
        if index.dtype.kind not in "iu":
            raise InputError(f"positions are whole numbers, and these are {index.type_name}")
    wide = [cast(index, DEFAULT_INT) for index in indices]
    shape = _shape_at(within, places, indices)
    update = broadcast_to(_fitting(new, len(shape)), shape)
    put = emit("index_set", [within, *wide, update], within.shape, x.dtype, axes=places, from_end=True)
    return put if all(part == slice(None) for part in taken) else setitem(x, tuple(taken), put)


def _shape_at(x: Traced, places: list[int], indices: list[Traced]) -> tuple[int, ...]:
    """The shape of what is read at positions along these axes."""
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in places]
    first = places[0] if places[-1] - places[0] == len(places) - 1 else 0
    return (*rest[:first], *broadcast_shape(*indices), *rest[first:])


def _scattered(x: Traced, parts: list[Any], new: Traced) -> Traced:
    """Where the elements lie apart: each reads from x, or from what is assigned; of repeated ones the last counts."""
    key = tuple(x.recorder.known(part) if isinstance(part, Traced) else part for part in parts)
    places: Array = np.asarray(np.arange(x.size).reshape(x.shape)[key])
    update = reshape(broadcast_to(_fitting(new, places.ndim), places.shape), (-1,))
    sources = np.arange(x.size)
    sources[places.reshape(-1)] = x.size + np.arange(places.size)
    both = emit("cat", [reshape(x, (-1,)), update], (x.size + places.size,), x.dtype, axis=0)
    return reshape(take(both, constant(sources)), x.shape)
