"""Transfers between host and card: a run's feeds, flags and results go to the card by one call, and back by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, finalize

import numpy as np

from engine.codegen.functions.expansions import reports_range
from engine.codegen.native.kernel_errors import Reasons
from engine.compiler.control_flow import PlannedScan
from engine.compiler.fused_kernel import Fused
from engine.compiler.plan import Step
from engine.ir.graph import at_origin
from engine.ir.op import Array
from engine.ir.tensor_type import INT32, HostArray, TensorType
from engine.ops.index.indices import outside
from engine.runtime.host_mapping import HostMapping, mapping_of
from engine.runtime.interpreter import Buffer

# Pinned memory of the host, which a card reads and writes by itself, and how much of it plans may hold.


class NoPinnedMemory(Exception):
    """The system has none, or none for this process, or less may be pinned than is needed."""


class PinnedMemoryFull(Exception):
    """Others hold what is needed."""


class PinnedBlock:
    """Some bytes, which others may have once nobody refers to this."""

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.ptr = int(pointer.ptr)
        self.bytes: HostArray = np.frombuffer(pointer, np.uint8, nbytes)


class PinnedMemory:
    """Allocator of blocks, of at most so many bytes together. Threads may share it.

    CuPy's own pool keeps what it had of every size, and knows no bound.
    """

    def __init__(self, cupy: Any, most: int) -> None:
        self._cupy, self._most = cupy, most
        self._held = 0
        #: bytes of blocks that are gone, since somebody looked: a collector may tell, whoever holds the lock
        self._gone: deque[int] = deque()
        self._lock = Lock()

    def block(self, nbytes: int) -> PinnedBlock:
        """Bytes in which anything lies. Raises PinnedMemoryFull and NoPinnedMemory."""
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


#: bytes of feeds that are carried together, and of results
MOST_CARRIED: Final = 1 << 20
#: parts begin at multiples, as memory of CuPy's pool does: libraries choose by the alignment of what they read
_ALIGNED: Final = 512

_Key = TypeVar("_Key", bound=Hashable)


class Exchange:
    """Feeds, flags and results of a plan, in this order, in memory of the card and in pinned memory of the host.

    `send` copies the first two to the card, and with them the flags cleared; `fetch` copies the last two back. Both are
    made on the current stream, and may be recorded: their addresses do not change.
    """

    def __init__(
        self, cupy: Any, pinned: PinnedMemory, fed: Mapping[Hashable, TensorType], flags: int, results: Sequence[int]
    ) -> None:
        """`flags` is how many there are, `results` the bytes of each buffer. Raises as `PinnedMemory.block`."""
        self._cupy = cupy
        sizes = [*(type.nbytes for type in fed.values()), INT32.itemsize * flags, *results]
        starts = [*accumulate((-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes), initial=0)]
        self._noted, self._found, self._end = starts[len(fed)], starts[len(fed) + 1], starts[-1]
        self._here = pinned.block(self._end)
        self._there = cupy.cuda.alloc(self._end)
        self._places = [self._on_host(type, at) for type, at in zip(fed.values(), starts, strict=False)]
        #: on the card
        self.feeds: dict[Hashable, Array] = {
            feed: cupy.ndarray(type.shape, type.dtype, self._there + at)
            for (feed, type), at in zip(fed.items(), starts, strict=False)
        }
        self.flags: Array = cupy.ndarray(flags, INT32, self._there + self._noted)
        self.buffers: list[Buffer] = [self._there + at for at in starts[len(fed) + 1 : -1]]
        #: as `fetch` has brought them
        self.fetched_flags = self._on_host(TensorType((flags,), INT32), self._noted)

    @property
    def nbytes(self) -> int:
        """Of both blocks."""
        return 2 * self._end

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        """Lay out what is sent next: arrays of the types that were stated."""
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
        """Where a dense array of the card lies on the host once it has been fetched; None of one elsewhere."""
        at = array.data.ptr - self._there.ptr if array.size else 0
        if not 0 <= at <= self._end - array.nbytes:
            return None
        return self._on_host(TensorType.of(array), at)

    def _on_host(self, type: TensorType, at: int) -> HostArray:
        return np.ndarray(type.shape, type.dtype, self._here.bytes, at)

    def _copy(self, to: int, of: int, nbytes: int, kind: int) -> None:
        stream = self._cupy.cuda.get_current_stream().ptr
        self._cupy.cuda.runtime.memcpyAsync(to, of, nbytes, kind, stream)


def carried(sizes: Mapping[_Key, int]) -> list[_Key]:
    """Of what takes so many bytes each, what is carried, the smallest first, in the order of `sizes`."""
    chosen, nbytes = set[_Key](), 0
    for key in sorted(sizes, key=sizes.__getitem__):
        nbytes += sizes[key]
        if nbytes > MOST_CARRIED:
            break
        chosen.add(key)
    return [key for key in sizes if key in chosen]


# Flags on the card: faults that the kernels of one run find in their data, so that nobody waits before the end.

_WIDTH: Final = 4  # bytes of a flag
_NOTE: Final = "const long long at = index; if (at < least || at >= extent) atomicCAS(&flag[0], 0, code)"


class CudaFlags:
    """A number for each step: 0, or what it has found first. A loop has found that it is out of range."""

    def __init__(self, cupy: Any, steps: Sequence[Step], found: Array | None = None) -> None:
        """`found` is where they lie: as many as there are steps, int32."""
        self._step = 0
        self._steps = steps
        self._noted = any(map(_may_leave_range, steps))
        self._found: Array = cupy.zeros(max(1, len(steps)), "int32") if found is None else found
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        self._kernel = cupy.ElementwiseKernel(
            "T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE, "gradserve_note"
        )

    def enter(self, step: int) -> None:
        """What is noted from now on is of this step."""
        self._step = step

    def address(self, step: int) -> int:
        """Where that of a step lies."""
        return int(self._found.data.ptr) + _WIDTH * step

    def watch(self) -> None:
        """Kernels of recipes may note something: that a step finds fault is all that is known then."""
        self._noted = True

    def note(self, index: Array, extent: int, operand: int, least: int) -> None:
        """As `IndexNotes` has it."""
        self._noted = True
        self._ranges[self._step, operand] = (extent, least)
        self._kernel(index, least, extent, operand + 1, self._found[self._step : self._step + 1])

    def begin(self) -> None:
        """Before a run."""
        if self._noted:
            self._found.data.memset_async(0, self._found.nbytes)

    def end(self) -> bool:
        """After a run, whose end this waits for if it has noted anything: whether its loops were all within range.

        Raises IndexOutOfRange for the first node that had an index outside. Where a kernel of a recipe has noted one,
        this is false, too: who computes the plan by other means finds it.
        """
        if not self._noted:
            return True
        found = self._read_all()
        for step in map(int, found.nonzero()[0]):
            if _may_leave_range(self._steps[step]):
                return False
            operand = int(found[step]) - 1
            if (step, operand) not in self._ranges:
                return False
            extent, least = self._ranges[step, operand]
            raise at_origin(outside(extent, operand, least), self._steps[step].origin)
        return True

    def _read_all(self) -> HostArray:
        found: HostArray = self._found.get()
        return found


class ExchangedFlags(CudaFlags):
    """Flags that are cleared and fetched with what a run is fed and finds, and read once that is there."""

    def __init__(self, cupy: Any, steps: Sequence[Step], exchange: Exchange) -> None:
        super().__init__(cupy, steps, exchange.flags)
        self._fetched = exchange.fetched_flags

    def begin(self) -> None:
        """They are sent as zeros."""

    def _read_all(self) -> HostArray:
        return self._fetched


def _may_leave_range(step: Step) -> bool:
    """Whether a step's kernel tells that it is out of range. An index is noted by no such step."""
    if isinstance(step.op, Fused):
        return reports_range(step.op.loop)
    return isinstance(step.op, PlannedScan) and step.op.step_loop is not None and step.op.step_loop.reports_range


# Large feeds from mapped memory of the host, which the card reads by itself once it is registered.

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
