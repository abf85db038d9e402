"""The fallback of a kernel that is not there, or has met what it has no formula for: other calls compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from engine.graph.op import KernelCall
from engine.graph.tensor_type import HostArray
from engine.native.calls import make_calls
from engine.native.native_call import FollowedArray, NativeGuard, followed

#: binds operands and results to calls that compute the same
Otherwise: TypeAlias = Callable[[Sequence[HostArray], Sequence[HostArray]], Sequence[KernelCall]]


def fallback(
    otherwise: Otherwise,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
    calls: Sequence[KernelCall] = (),
) -> KernelCall:
    """The call that has `otherwise` bind the arrays anew each time, and makes what that comes to.

    The arrays are those that lie then where `calls`, which were bound to the same, are told to point.
    """
    read, written = ([followed(array, calls) for array in arrays] for arrays in (operands, results))
    return _compute, (otherwise, read, written)


def guarded(
    calls: Sequence[KernelCall],
    word: HostArray,
    otherwise: Otherwise,
    operands: Sequence[HostArray],
    results: Sequence[HostArray],
) -> list[KernelCall]:
    """`calls`, and the fallback after a run in which they left a `word`, int64 [1], other than 0."""
    return [*calls, (NativeGuard(word, fallback(otherwise, operands, results, calls)), ())]


def _compute(otherwise: Otherwise, read: Sequence[FollowedArray], written: Sequence[FollowedArray]) -> None:
    make_calls(otherwise([x.now for x in read], [x.now for x in written]))
