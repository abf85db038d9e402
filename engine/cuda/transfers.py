"""Transfers between host and GPU: feeds, flags and results of a run go there by one call, and back by one.

Small feeds and results lie in an `Exchange`: a block of pinned memory, and a block on the GPU with the same layout.
Flags, one for each step, note the faults that kernels find in their data (`CudaFlags`), so that nobody waits for the
GPU before the end of a run. Large feeds are copied one by one; from mapped memory of the host that is registered with
CUDA, the GPU reads them by itself (`RegisteredMemory`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, finalize

import numpy as np

from engine.codegen.functions.expansions import reports_range
from engine.codegen.native.machine_code import Reasons
from engine.compiler.control_flow import PlannedScan
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Step
from engine.ir.graph import at_origin
from engine.ir.op import Array
from engine.ir.tensor_type import INT32, HostArray, TensorType
from engine.ops.index.indices import outside
from engine.runtime.host_mapping import HostMapping, mapping_of
from engine.runtime.interpreter import Buffer

#: bytes of feeds that are carried together, and of results
MOST_CARRIED: Final = 1 << 20
#: alignment of parts, as of memory of CuPy's pool: libraries choose by the alignment of their operands
_ALIGNED: Final = 512
#: bytes of one copy: copies of others come in between
COPIED_AT_ONCE: Final = 4 << 20
#: flag of cudaHostRegister: for every context
_PORTABLE: Final = 1
#: bytes of a flag
_WIDTH: Final = 4
_NOTE: Final = "const long long at = index; if (at < least || at >= extent) atomicCAS(&flag[0], 0, code)"

_Key = TypeVar("_Key", bound=Hashable)
_reasons = Reasons("feeds are copied to the card by way of other memory: %s")


class NoPinnedMemory(Exception):
    """Failure: the system pins no memory for this process, or more is needed than may be pinned."""


class PinnedMemoryFull(Exception):
    """Failure: others hold the pinned memory that is needed."""


class PinnedBlock:
    """Pinned bytes, free again once nobody refers to this."""

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.ptr = int(pointer.ptr)
        self.bytes: HostArray = np.frombuffer(pointer, np.uint8, nbytes)


class PinnedMemory:
    """Allocator of pinned blocks, of at most so many bytes together. Threads may share it.

    CuPy's own pool keeps blocks of every size, and has no bound.
    """

    def __init__(self, cupy: Any, most: int) -> None:
        self._cupy, self._most = cupy, most
        self._held = 0
        #: bytes of blocks that were collected, and not yet subtracted: the collector runs whoever holds the lock
        self._gone: deque[int] = deque()
        self._lock = Lock()

    def block(self, nbytes: int) -> PinnedBlock:
        """Allocate a block, uninitialised. Raises PinnedMemoryFull and NoPinnedMemory."""
        cuda = self._cupy.cuda
        if nbytes > self._most:
            raise NoPinnedMemory(f"plans may pin {self._most:,} bytes, and one needs more")
        with self._lock:
            while self._gone:
                self._held -= self._gone.popleft()
            if self._held + nbytes > self._most:
                raise PinnedMemoryFull(f"{self._held:,} of {self._most:,} bytes are held")
            try:
                pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
            except cuda.runtime.CUDARuntimeError as error:
                raise NoPinnedMemory(str(error)) from None
            self._held += nbytes
        made = PinnedBlock(pointer, nbytes)
        finalize(made, self._gone.append, nbytes).atexit = False
        return made


class Exchange:
    """Feeds, flags and results of a plan, in this order, in memory of the card and in pinned memory of the host.

    `send` copies feeds and cleared flags to the card, `fetch` copies flags and results back. Both run on the current
    stream, and may be recorded: their addresses do not change.
    """

    def __init__(
        self, cupy: Any, pinned: PinnedMemory, fed: Mapping[Hashable, TensorType], flags: int, results: Sequence[int]
    ) -> None:
        """`flags` is their number, `results` are the bytes of each buffer. Raises as `PinnedMemory.block`."""
        self._cupy = cupy
        sizes = [*(type.nbytes for type in fed.values()), INT32.itemsize * flags, *results]
        starts = [*accumulate((-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes), initial=0)]
        self._noted, self._found, self._end = starts[len(fed)], starts[len(fed) + 1], starts[-1]
        self._here = pinned.block(self._end)
        self._there = cupy.cuda.alloc(self._end)
        self._places = [self._on_host(type, start) for type, start in zip(fed.values(), starts, strict=False)]
        #: feeds, flags and buffers on the card
        self.feeds: dict[Hashable, Array] = {
            feed: cupy.ndarray(type.shape, type.dtype, self._there + start)
            for (feed, type), start in zip(fed.items(), starts, strict=False)
        }
        self.flags: Array = cupy.ndarray(flags, INT32, self._there + self._noted)
        self.buffers: list[Buffer] = [self._there + start for start in starts[len(fed) + 1 : -1]]
        #: flags on the host, after `fetch`
        self.fetched_flags = self._on_host(TensorType((flags,), INT32), self._noted)

    @property
    def nbytes(self) -> int:
        """Bytes of both blocks."""
        return 2 * self._end

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        """Put feeds of the stated types where the next `send` reads them."""
        for place, feed in zip(self._places, self.feeds, strict=True):
            place[...] = feeds[feed]
        self.fetched_flags.fill(0)

    def send(self) -> None:
        """Copy feeds to the card, and clear its flags."""
        self._copy(self._there.ptr, self._here.ptr, self._found, self._cupy.cuda.runtime.memcpyHostToDevice)

    def fetch(self) -> None:
        """Copy flags and results to the host."""
        here, there = self._here.ptr + self._noted, self._there.ptr + self._noted
        self._copy(here, there, self._end - self._noted, self._cupy.cuda.runtime.memcpyDeviceToHost)

    def fetched(self, array: Array) -> HostArray | None:
        """Find the array on the host to which a dense array of the card is fetched; None if it lies elsewhere."""
        start = array.data.ptr - self._there.ptr if array.size else 0
        if not 0 <= start <= self._end - array.nbytes:
            return None
        return self._on_host(TensorType.of(array), start)

    def _on_host(self, type: TensorType, start: int) -> HostArray:
        return np.ndarray(type.shape, type.dtype, self._here.bytes, start)

    def _copy(self, to: int, of: int, nbytes: int, kind: int) -> None:
        stream = self._cupy.cuda.get_current_stream().ptr
        self._cupy.cuda.runtime.memcpyAsync(to, of, nbytes, kind, stream)


def carried(sizes: Mapping[_Key, int]) -> list[_Key]:
    """Choose what is carried, the smallest first, up to MOST_CARRIED bytes; in the order of `sizes`."""
    chosen, nbytes = set[_Key](), 0
    for key in sorted(sizes, key=sizes.__getitem__):
        nbytes += sizes[key]
        if nbytes > MOST_CARRIED:
            break
        chosen.add(key)
    return [key for key in sizes if key in chosen]


class CudaFlags:
    """A number for each step: 0, or its first fault. The fault of a fused kernel is an argument out of range."""

    def __init__(self, cupy: Any, steps: Sequence[Step], found: Array | None = None) -> None:
        """`found` holds the flags: as many as there are steps, int32."""
        self._step = 0
        self._steps = steps
        self._noted = any(map(_may_leave_range, steps))
        self._found: Array = cupy.zeros(max(1, len(steps)), "int32") if found is None else found
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        self._kernel = cupy.ElementwiseKernel(
            "T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE, "gradserve_note"
        )

    def enter(self, step: int) -> None:
        """Attribute notes to this step from now on."""
        self._step = step

    def address(self, step: int) -> int:
        """Return the address of a step's flag."""
        return int(self._found.data.ptr) + _WIDTH * step

    def watch(self) -> None:
        """Expect notes of recipes' kernels, of which only the step is known."""
        self._noted = True

    def note(self, index: Array, extent: int, operand: int, least: int) -> None:
        """Launch a check of indices, as `IndexNotes` asks for."""
        self._noted = True
        self._ranges[self._step, operand] = (extent, least)
        self._kernel(index, least, extent, operand + 1, self._found[self._step : self._step + 1])

    def begin(self) -> None:
        """Clear the flags before a run."""
        if self._noted:
            self._found.data.memset_async(0, self._found.nbytes)

    def end(self) -> bool:
        """Check the flags after a run, for whose end this waits; False if a kernel was out of range.

        Raises IndexOutOfRange for the first node with an index outside. If a recipe's kernel has noted an index, this
        is False, too: the plan has to run by other means, which find it.
        """
        if not self._noted:
            return True
        flags = self._read_all()
        for step in map(int, flags.nonzero()[0]):
            if _may_leave_range(self._steps[step]):
                return False
            operand = int(flags[step]) - 1
            if (step, operand) not in self._ranges:
                return False
            extent, least = self._ranges[step, operand]
            raise at_origin(outside(extent, operand, least), self._steps[step].origin)
        return True

    def _read_all(self) -> HostArray:
        flags: HostArray = self._found.get()
        return flags


class ExchangedFlags(CudaFlags):
    """Flags of an exchange: cleared with the feeds, and fetched with the results."""

    def __init__(self, cupy: Any, steps: Sequence[Step], exchange: Exchange) -> None:
        super().__init__(cupy, steps, exchange.flags)
        self._fetched = exchange.fetched_flags

    def begin(self) -> None:
        """Do nothing: the exchange sends them as zeros."""

    def _read_all(self) -> HostArray:
        return self._fetched


def _may_leave_range(step: Step) -> bool:
    """Whether a step's kernel tells that it is out of range. No such step notes an index."""
    if isinstance(step.op, Fused):
        return reports_range(step.op.loop)
    return isinstance(step.op, PlannedScan) and step.op.step_loop is not None and step.op.step_loop.reports_range


class RegisteredMemory:
    """Mappings of the host that are registered with the card, each as long as it exists. Threads may share it.

    A mapping is registered when it comes for the second time: to pin its pages takes longer than one copy by other
    memory, and very large tensors are mapped for one request alone.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._lock = Lock()
        #: whether the card reads a known mapping; None of one that came once
        self._known: WeakKeyDictionary[HostMapping, bool | None] = WeakKeyDictionary()

    def copied(self, array: HostArray, otherwise: Callable[[HostArray], Array]) -> Array:
        """Copy a dense array to the card. It must not change until the stream has been waited for.

        An array outside registered memory is copied `otherwise`.
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
        """Register a mapping. CUDA refuses if the process may not pin memory, or somebody else has registered it."""
        runtime, address = self._cupy.cuda.runtime, mapping.address
        try:
            runtime.hostRegister(address, len(mapping), _PORTABLE)
        except runtime.CUDARuntimeError as error:
            _reasons.tell(str(error))
            return False
        mapping.before_it_goes(lambda: runtime.hostUnregister(address))
        return True
