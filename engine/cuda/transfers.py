"""Transfers between host and GPU: one call sends a run's feeds and flags, and one call fetches its flags and results.

Small feeds and results are in an `Exchange`: a block of pinned memory, and a block on the GPU with the same layout.
Flags, one per step, record errors that kernels find in their data (`CudaFlags`), so that the host does not wait for the
GPU before the end of a run. Large feeds are copied one by one. If mapped host memory is registered with CUDA, the GPU
reads it directly (`RegisteredMemory`).
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
from engine.ir.graph import locate_error
from engine.ir.op import Array
from engine.ir.tensor_type import INT32, HostArray, TensorType
from engine.ops.index.indices import index_error
from engine.runtime.host_mapping import HostMapping, mapping_of
from engine.runtime.interpreter import Buffer

#: maximum bytes of feeds, and of results, in an exchange
MAX_EXCHANGED_BYTES: Final = 1 << 20
#: alignment of an exchange's parts, that of CuPy's pool: libraries choose algorithms by the alignment of their operands
_ALIGNED: Final = 512
#: bytes of one copy: copies of other processes run in between
COPY_CHUNK_BYTES: Final = 4 << 20
#: cudaHostRegister flag: the registration is valid in every context
_PORTABLE: Final = 1
#: bytes of a flag
_WIDTH: Final = 4
_NOTE: Final = "const long long at = index; if (at < least || at >= extent) atomicCAS(&flag[0], 0, code)"

_Key = TypeVar("_Key", bound=Hashable)
_reasons = Reasons("feeds are copied to the card by way of other memory: %s")


class NoPinnedMemory(Exception):
    """The system does not let this process pin memory, or more is needed than it may pin."""


class PinnedMemoryFull(Exception):
    """The pinned memory that is needed is in use."""


class PinnedBlock:
    """Pinned bytes, freed when nothing refers to this object."""

    def __init__(self, pointer: Any, nbytes: int) -> None:
        self.ptr = int(pointer.ptr)
        self.bytes: HostArray = np.frombuffer(pointer, np.uint8, nbytes)


class PinnedMemory:
    """Allocator of pinned blocks with a limit on their total bytes. Thread-safe.

    CuPy's own pool caches blocks of every size, and has no limit.
    """

    def __init__(self, cupy: Any, limit: int) -> None:
        self._cupy, self._limit = cupy, limit
        self._held = 0
        #: sizes of collected blocks, not subtracted yet: a finalizer cannot take the lock, as its thread may hold it
        self._collected: deque[int] = deque()
        self._lock = Lock()

    def block(self, nbytes: int) -> PinnedBlock:
        """Allocate an uninitialised block. Raises PinnedMemoryFull and NoPinnedMemory."""
        cuda = self._cupy.cuda
        if nbytes > self._limit:
            raise NoPinnedMemory(f"plans may pin {self._limit:,} bytes, and one needs more")
        with self._lock:
            while self._collected:
                self._held -= self._collected.popleft()
            if self._held + nbytes > self._limit:
                raise PinnedMemoryFull(f"{self._held:,} of {self._limit:,} bytes are held")
            try:
                pointer = cuda.PinnedMemoryPointer(cuda.PinnedMemory(nbytes), 0)
            except cuda.runtime.CUDARuntimeError as error:
                raise NoPinnedMemory(str(error)) from None
            self._held += nbytes
        block = PinnedBlock(pointer, nbytes)
        finalize(block, self._collected.append, nbytes).atexit = False
        return block


class Exchange:
    """Feeds, flags and results of a plan, in this order, in GPU memory and in pinned host memory.

    `send` copies feeds and cleared flags to the GPU, `fetch` copies flags and results back. Both run on the current
    stream, and may be recorded, since their addresses are fixed.
    """

    def __init__(
        self,
        cupy: Any,
        pinned: PinnedMemory,
        feed_types: Mapping[Hashable, TensorType],
        flags: int,
        results: Sequence[int],
    ) -> None:
        """`flags` is their number, `results` are the bytes of each buffer. Raises NoPinnedMemory, PinnedMemoryFull."""
        self._cupy = cupy
        sizes = [*(type.nbytes for type in feed_types.values()), INT32.itemsize * flags, *results]
        starts = [*accumulate((-(-nbytes // _ALIGNED) * _ALIGNED for nbytes in sizes), initial=0)]
        self._flags_start, self._results_start, self._end = (
            starts[len(feed_types)],
            starts[len(feed_types) + 1],
            starts[-1],
        )
        self._host = pinned.block(self._end)
        self._device = cupy.cuda.alloc(self._end)
        self._host_feeds = [
            self._on_host(type, start) for type, start in zip(feed_types.values(), starts, strict=False)
        ]
        #: feeds, flags and buffers on the GPU
        self.feeds: dict[Hashable, Array] = {
            feed: cupy.ndarray(type.shape, type.dtype, self._device + start)
            for (feed, type), start in zip(feed_types.items(), starts, strict=False)
        }
        self.flags: Array = cupy.ndarray(flags, INT32, self._device + self._flags_start)
        self.buffers: list[Buffer] = [self._device + start for start in starts[len(feed_types) + 1 : -1]]
        #: flags on the host after `fetch`
        self.fetched_flags = self._on_host(TensorType((flags,), INT32), self._flags_start)

    @property
    def nbytes(self) -> int:
        """Bytes of both blocks."""
        return 2 * self._end

    def put(self, feeds: Mapping[Hashable, HostArray]) -> None:
        """Put feeds of the declared types where the next `send` reads them."""
        for target, feed in zip(self._host_feeds, self.feeds, strict=True):
            target[...] = feeds[feed]
        self.fetched_flags.fill(0)

    def send(self) -> None:
        """Copy feeds to the GPU, and clear its flags."""
        self._copy(self._device.ptr, self._host.ptr, self._results_start, self._cupy.cuda.runtime.memcpyHostToDevice)

    def fetch(self) -> None:
        """Copy flags and results to the host."""
        host, device = self._host.ptr + self._flags_start, self._device.ptr + self._flags_start
        self._copy(host, device, self._end - self._flags_start, self._cupy.cuda.runtime.memcpyDeviceToHost)

    def host_array(self, array: Array) -> HostArray | None:
        """Return the host array to which a dense GPU array is fetched; None if the array is not in the exchange."""
        start = array.data.ptr - self._device.ptr if array.size else 0
        if not 0 <= start <= self._end - array.nbytes:
            return None
        return self._on_host(TensorType.of(array), start)

    def _on_host(self, type: TensorType, start: int) -> HostArray:
        return np.ndarray(type.shape, type.dtype, self._host.bytes, start)

    def _copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        stream = self._cupy.cuda.get_current_stream().ptr
        self._cupy.cuda.runtime.memcpyAsync(target, source, nbytes, kind, stream)


def choose_exchanged(sizes: Mapping[_Key, int]) -> list[_Key]:
    """Choose what fits an exchange, the smallest first, in the order of `sizes`.

    The chosen arrays have at most MAX_EXCHANGED_BYTES bytes together.
    """
    selected, nbytes = set[_Key](), 0
    for key in sorted(sizes, key=sizes.__getitem__):
        nbytes += sizes[key]
        if nbytes > MAX_EXCHANGED_BYTES:
            break
        selected.add(key)
    return [key for key in sizes if key in selected]


class CudaFlags:
    """Flag of each step: 0, or its first error. The error of a fused kernel is an argument out of range."""

    def __init__(self, cupy: Any, steps: Sequence[Step], memory: Array | None = None) -> None:
        """`memory` is the memory of the flags, one int32 per step."""
        self._step = 0
        self._steps = steps
        self._has_notes = any(map(_may_leave_range, steps))
        self._flags: Array = cupy.zeros(max(1, len(steps)), "int32") if memory is None else memory
        self._ranges: dict[tuple[int, int], tuple[int, int]] = {}
        self._kernel = cupy.ElementwiseKernel(
            "T index, int64 least, int64 extent, int32 code", "raw int32 flag", _NOTE, "gradserve_note"
        )

    def enter(self, step: int) -> None:
        """Attribute notes to this step from now on."""
        self._step = step

    def address(self, step: int) -> int:
        """Return the address of a step's flag."""
        return int(self._flags.data.ptr) + _WIDTH * step

    def watch(self) -> None:
        """Expect notes from recipes' kernels, which report only the step."""
        self._has_notes = True

    def record(self, index: Array, extent: int, operand: int, lower: int) -> None:
        """Launch a check of indices, as `IndexErrors` requires."""
        self._has_notes = True
        self._ranges[self._step, operand] = (extent, lower)
        self._kernel(index, lower, extent, operand + 1, self._flags[self._step : self._step + 1])

    def begin(self) -> None:
        """Clear the flags before a run."""
        if self._has_notes:
            self._flags.data.memset_async(0, self._flags.nbytes)

    def end(self) -> bool:
        """Check the flags, waiting for the end of the run; return False if a kernel got an argument out of range.

        Raises IndexOutOfRange for the first node with an index outside its axis. If a recipe's kernel has noted an
        index, this also returns False: the caller then runs the plan step by step, and so finds the index.
        """
        if not self._has_notes:
            return True
        flags = self._read_all()
        for step in map(int, flags.nonzero()[0]):
            if _may_leave_range(self._steps[step]):
                return False
            operand = int(flags[step]) - 1
            if (step, operand) not in self._ranges:
                return False
            extent, least = self._ranges[step, operand]
            raise locate_error(index_error(extent, operand, least), self._steps[step].origin)
        return True

    def _read_all(self) -> HostArray:
        flags: HostArray = self._flags.get()
        return flags


class ExchangedFlags(CudaFlags):
    """Flags in an exchange, cleared with the feeds and fetched with the results."""

    def __init__(self, cupy: Any, steps: Sequence[Step], exchange: Exchange) -> None:
        super().__init__(cupy, steps, exchange.flags)
        self._fetched = exchange.fetched_flags

    def begin(self) -> None:
        """Do nothing: the exchange sends the flags as zeros."""

    def _read_all(self) -> HostArray:
        return self._fetched


def _may_leave_range(step: Step) -> bool:
    """Return whether a step's kernel reports arguments out of range. No such step notes an index."""
    if isinstance(step.op, Fused):
        return reports_range(step.op.kernel)
    return isinstance(step.op, PlannedScan) and step.op.step_loop is not None and step.op.step_loop.reports_range


class RegisteredMemory:
    """Host mappings that are registered with the GPU, each for as long as it exists. Thread-safe.

    A mapping is registered when it is used for the second time: pinning its pages takes longer than one copy through
    other memory, and very large tensors are mapped for a single request.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._lock = Lock()
        #: whether the GPU can read a mapping; None if it has been used only once
        self._registered: WeakKeyDictionary[HostMapping, bool | None] = WeakKeyDictionary()

    def copy_to_gpu(self, array: HostArray, fallback: Callable[[HostArray], Array]) -> Array:
        """Copy a dense array to the GPU. It must not change until the stream is synchronized.

        An array outside registered memory is copied by `fallback`.
        """
        mapping = mapping_of(array)
        if mapping is None or not self._is_registered(mapping):
            return fallback(array)
        runtime, stream = self._cupy.cuda.runtime, self._cupy.cuda.get_current_stream().ptr
        copy, source = self._cupy.empty(array.shape, array.dtype), array.ctypes.data
        for start in range(0, array.nbytes, COPY_CHUNK_BYTES):
            nbytes = min(COPY_CHUNK_BYTES, array.nbytes - start)
            target, part = copy.data.ptr + start, source + start
            runtime.memcpyAsync(target, part, nbytes, runtime.memcpyHostToDevice, stream)
        return copy

    def _is_registered(self, mapping: HostMapping) -> bool:
        with self._lock:
            if mapping not in self._registered:
                self._registered[mapping] = None
                return False
            registered = self._registered[mapping]
            if registered is None:
                registered = self._registered[mapping] = self._register(mapping)
            return registered

    def _register(self, mapping: HostMapping) -> bool:
        """Register a mapping. CUDA refuses if the process may not pin memory, or if it is already registered."""
        runtime, address = self._cupy.cuda.runtime, mapping.address
        try:
            runtime.hostRegister(address, len(mapping), _PORTABLE)
        except runtime.CUDARuntimeError as error:
            _reasons.log(str(error))
            return False
        mapping.on_unmap(lambda: runtime.hostUnregister(address))
        return True
