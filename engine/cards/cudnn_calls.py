"""Plans of cuDNN bound to memory: calls that launch them on the stream that is current."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.cards.card_recipe import CardPlace, CudnnPhase
from engine.cards.cudnn_library import CudnnLibrary
from engine.graph.op import KernelCall

#: bytes, of which cuDNN takes each address to be a multiple: its frontend states no other alignment
CUDNN_ALIGNMENT: Final = 16


def cudnn_call(
    phase: CudnnPhase, library: CudnnLibrary, address: Callable[[CardPlace], int], stream: Callable[[], int]
) -> KernelCall | None:
    """The call that launches a phase: `address` tells where things lie, and `stream` which stream is current then.

    None where something does not lie as cuDNN needs it.
    """
    addresses = {number: address(place) for number, place in phase.tensors}
    workspace = address(phase.workspace) if phase.plan.workspace else 0
    if any(each % CUDNN_ALIGNMENT for each in (workspace, *addresses.values())):
        return None
    graph = phase.plan.graph
    return lambda: graph.execute(addresses, workspace, handle=library.handle_on(stream())), ()
