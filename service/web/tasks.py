"""Tasks of requests, made in one place for both handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from starlette.requests import Request

from service.core.allocation import GrowingAllocation
from service.core.errors import Refusal
from service.core.keys.caller import Caller, tenant_of
from service.core.settings import Settings
from service.store.tables import Registered
from service.web.head import Media, body_limit
from service.workers.frames import INLINE
from service.workers.pool import Pool
from service.workers.task import Task


class BodyBuffer:
    """Buffer of a body of at most `max_bytes`: small bodies in a bytearray, others in memory that `allocate` returns.

    Memory is reserved as bytes arrive, never in advance for the length that a head announces.
    """

    def __init__(self, allocate: Callable[[int, str], GrowingAllocation], max_bytes: int, tenant: str) -> None:
        self._allocate, self._max_bytes, self._tenant = allocate, max_bytes, tenant
        self._small = bytearray()
        #: bytes received so far
        self.received = 0
        self.memory: GrowingAllocation | None = None

    @property
    def body(self) -> bytes | memoryview:
        """The received bytes. A large body is a view of pool memory, which is pinned from now on."""
        if self.memory is None:
            return bytes(self._small)
        self.memory.pin()
        return self.memory.view[: self.received]

    def put(self, part: bytes) -> None:
        """Append a part. Raises Refusal if there is no memory for it."""
        end = self.received + len(part)
        if self.memory is None and end > INLINE:
            self.memory = self._allocate(self._max_bytes, self._tenant)
            self.memory.reserve(end)
            self.memory.view[: self.received] = self._small
            self._small = bytearray()
        if self.memory is None:
            self._small += part
        else:
            self.memory.reserve(end)
            self.memory.view[self.received : end] = part
        self.received = end

    def get_buffer(self, size: int) -> memoryview | None:
        """Return memory for the next bytes, None for few bytes or if there is no more memory."""
        if self.memory is None or size < INLINE:
            return None
        try:
            reserved = self.memory.reserve(self.received + INLINE)
        except Refusal:
            return None  # `put` raises it for the next part
        return self.memory.view[self.received : min(self.received + size, reserved)]

    def buffer_updated(self, nbytes: int) -> None:
        """Count bytes that were received into that memory."""
        self.received += nbytes

    def release(self) -> None:
        """Free the memory of a body that is not needed."""
        if self.memory is not None:
            self.memory.release()


async def receive_body(request: Request, pool: Pool, settings: Settings, tenant: str) -> BodyBuffer:
    """Receive a body, into pool memory if it is large, on the tenant's share.

    Raises the exceptions of the middleware and the pool, ClientDisconnect, and Refusal (bad_request_framing).
    """
    announced = request.headers.get("content-length", "")
    max_bytes = int(announced) if announced.isdecimal() else body_limit(request.state.media, settings)
    upload = BodyBuffer(pool.allocate, max_bytes, tenant)
    try:
        async for part in request.stream():
            if upload.received + len(part) > max_bytes:
                raise Refusal("bad_request_framing", f"the body has more bytes than the {max_bytes} announced")
            upload.put(part)
        if announced.isdecimal() and upload.received != max_bytes:
            raise Refusal(
                "bad_request_framing", f"the body has {upload.received} bytes, but Content-Length is {max_bytes}"
            )
    except BaseException:
        upload.release()
        raise
    return upload


class Requester(Protocol):
    """Request that a task is made for; `arrived` is a time of the monotonic clock."""

    request_id: str
    arrived: float
    caller: Caller


def make_task(
    call: str,
    asker: Requester,
    tenant: str,
    timeout: float,
    media: Media,
    body: bytes | memoryview,
    memory: GrowingAllocation | None = None,
    *,
    graph: Registered | None = None,
    is_recalled: bool = False,
    subject: str | None = None,
    credential: str = "",
) -> Task:
    """Make a task that must end within `timeout` seconds of the request's arrival. `memory`, if any, holds its body.

    The graph is the registered `graph`, which `is_recalled` if its owner has to be asked about it, or in the body.
    `subject` is the name of the tensor or model that the task is about. `credential` is the Authorization header, if
    workers may need it.
    """
    return Task(
        call,
        body,
        asker.request_id,
        timeout,
        asker.arrived + timeout,
        media.body_type,
        media.answer_type,
        None if graph is None else graph.key,
        None if graph is None else graph.record,
        graph.graph_id if graph is not None and is_recalled else None,
        memory=memory,
        namespace=asker.caller.namespace,
        subject=subject,
        tenant=tenant,
        credential=credential,
    )


def make_upload_task(
    call: str,
    request: Request,
    upload: BodyBuffer,
    *,
    graph: Registered | None = None,
    subject: str | None = None,
) -> Task:
    """Make the task of a request whose body has been received."""
    body, asker = upload.body, cast("Requester", request.state)
    tenant, credential = tenant_of_request(request), request.headers.get("authorization", "")
    return make_task(
        call,
        asker,
        tenant,
        request.state.timeout,
        request.state.media,
        body,
        upload.memory,
        graph=graph,
        subject=subject,
        credential=credential,
    )


def tenant_of_request(request: Request) -> str:
    """Return the tenant whose share a request counts against."""
    return tenant_of(request.state.caller, request.client.host if request.client else "")
