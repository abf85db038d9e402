from __future__ import annotations

from collections.abc import Callable, Sequence

from service.budget import IDLE_ANSWER_BYTES
from service.transport import frames
from service.transport.shared_buffers import DescriptorChannel, SharedBuffer, SharedBuffers


class AnswerBuffers:
    """The buffers of this process that the front has, by number."""

    def __init__(self, channel: DescriptorChannel, tell: Callable[[int, int], None]) -> None:
        self._channel = channel
        self._tell = tell
        #: those that wait for the next answer among them
        self.buffers = SharedBuffers(IDLE_ANSWER_BYTES, self._dropped)
        self._away: dict[int, SharedBuffer] = {}

    def written(self, parts: Sequence[bytes | memoryview], nbytes: int) -> int:
        """The number of the buffer that holds the parts now, which the front can see."""
        buffer = self.buffers.acquire(nbytes)
        buffer.used = nbytes
        at = 0
        with memoryview(buffer.memory) as memory:
            for part in parts:
                memory[at : at + len(part)] = part
                at += len(part)
        self._away[buffer.number] = buffer
        self._channel.show(buffer)
        return buffer.number

    def released(self, number: int) -> None:
        """The front has sent what is in the buffer, or nobody wants it."""
        buffer = self._away.pop(number)
        if buffer.pooled:
            buffer.clear()
        self.buffers.put(buffer)

    def _dropped(self, buffer: SharedBuffer) -> None:
        self._channel.hide(buffer.number)
        self._tell(frames.FORGET, buffer.number)
        buffer.drop()
