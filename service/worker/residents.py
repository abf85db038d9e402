from __future__ import annotations

from typing import Final

from service.state.values import nbytes_of
from service.transport import frames
from service.transport.resident import array_of
from service.transport.shared_buffers import DescriptorChannel
from service.wire.version import Find, Version

#: tensors that a worker knows at a time
MOST_KNOWN: Final = 4096

_NOTHING: Final[dict[str, Version]] = {}


class Residents:
    """Versions by namespace and name."""

    def __init__(self, channel: DescriptorChannel) -> None:
        self._channel = channel
        self._known: dict[str, dict[str, Version]] = {}
        self._buffers: dict[tuple[str, str], int] = {}

    def of(self, namespace: str) -> Find:
        """What the tasks of a namespace find."""
        return self._known.get(namespace, _NOTHING).get

    def hear(self, frame: bytes, at: int) -> None:
        """Another version than before, or none. The one before goes with its last reader."""
        told = frames.read_tensor(frame, at)
        if number := self._buffers.pop((told.namespace, told.name), 0):
            self._channel.forget(number)
        if not told.dtype:
            self._drop(told.namespace, told.name)
            return
        data = told.data
        if told.buffer:
            data = memoryview(self._channel.mapped(told.buffer))[: nbytes_of(told.dtype, told.shape)]
            self._buffers[told.namespace, told.name] = told.buffer
        version = Version(told.etag, array_of(data, told.dtype, told.shape))
        self._known.setdefault(told.namespace, {})[told.name] = version

    def _drop(self, namespace: str, name: str) -> None:
        known = self._known.get(namespace, {})
        known.pop(name, None)
        if not known:
            self._known.pop(namespace, None)
