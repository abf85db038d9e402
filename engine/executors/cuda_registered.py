"""Large feeds from mapped memory of the host, which the card reads by itself once it is registered."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from engine.executors.host_mapping import HostMapping, mapping_of
from engine.graph.op import Array
from engine.graph.tensor_type import HostArray
from engine.native.reasons import Reasons

#: bytes of one copy: others who use the link meanwhile come in between
COPIED_AT_ONCE: Final = 4 << 20
#: of cudaHostRegister: for every context
_PORTABLE: Final = 1

_reasons = Reasons("feeds are copied to the card by way of other memory: %s")


class RegisteredMemory:
    """Mappings of the host that are registered with the card, each for as long as it is there. Threads may share it.

    One is registered when it comes for the second time: to pin its pages takes longer than one copy by other memory,
    and what is too large to be used again is mapped for one request alone.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._lock = Lock()
        #: whether the card reads those that came before; None of one that came once
        self._known: WeakKeyDictionary[HostMapping, bool | None] = WeakKeyDictionary()

    def copied(self, array: HostArray, otherwise: Callable[[HostArray], Array]) -> Array:
        """A dense array's copy on the card. The array has to stay as it is until the stream has been waited for.

        What does not lie in registered memory is copied `otherwise`.
        """
        mapping = mapping_of(array)
        if mapping is None or not self._is_registered(mapping):
            return otherwise(array)
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream().ptr
        made, source = self._cupy.empty(array.shape, array.dtype), array.ctypes.data
        for start in range(0, array.nbytes, COPIED_AT_ONCE):
            nbytes = min(COPIED_AT_ONCE, array.nbytes - start)
            to, of = made.data.ptr + start, source + start
            runtime.memcpyAsync(to, of, nbytes, runtime.memcpyHostToDevice, stream)
        return made

    def _is_registered(self, mapping: HostMapping) -> bool:
        with self._lock:
            if mapping not in self._known:
                self._known[mapping] = None
                return False
            known = self._known[mapping]
            if known is None:
                known = self._known[mapping] = self._register(mapping)
            return known

    def _register(self, mapping: HostMapping) -> bool:
        """Whether CUDA takes it: it does not where the process may not pin memory, or somebody has registered it."""
        runtime, address = self._cupy.cuda.runtime, mapping.address
        try:
            runtime.hostRegister(address, len(mapping), _PORTABLE)
        except runtime.CUDARuntimeError as error:
            _reasons.tell(str(error))
            return False
        mapping.before_it_goes(lambda: runtime.hostUnregister(address))
        return True
