"""What passes between the front and the workers. Both can be pickled: a worker may live in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine import HostArray
from service.wire.media import JSON


@dataclass(frozen=True, slots=True)
class Job:
    """One computing call: its name, its body as it came, and when (on the monotonic clock) its time is up.

    `sent` and `accepted` are the media types of the body and of the answer: JSON, or safetensors.
    """

    call: str
    body: bytes | HostArray
    request_id: str
    timeout: float  # seconds, as agreed with the client
    expires: float  # time.monotonic()
    sent: str = JSON
    accepted: str = JSON


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer's status, media type and body, in pieces; a problem unless the status is 200."""

    status: int
    media_type: str
    pieces: Sequence[bytes | memoryview]

    @property
    def body(self) -> bytes:
        """The pieces as one."""
        return b"".join(self.pieces)

    def __reduce__(self) -> tuple[type[Reply], tuple[int, str, list[bytes]]]:
        return Reply, (self.status, self.media_type, [bytes(piece) for piece in self.pieces])
