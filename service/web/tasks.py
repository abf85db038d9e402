"""The task that a request is, made in one place for both doors."""

from __future__ import annotations

from typing import Protocol, cast

from starlette.requests import Request

from service.core.allocation import GrowingAllocation
from service.core.keys.caller import Caller, tenant_of
from service.store.tables import Registered
from service.web.body_buffer import BodyBuffer
from service.web.head import Media
from service.workers.task import Task


class Asker(Protocol):
    """Request that a task is for; `arrived` is on the monotonic clock."""

    request_id: str
    arrived: float
    caller: Caller


def task_of(
    call: str,
    asker: Asker,
    tenant: str,
    timeout: float,
    media: Media,
    body: bytes | memoryview,
    memory: GrowingAllocation | None = None,
    *,
    graph: Registered | None = None,
    subject: str | None = None,
    credential: str = "",
) -> Task:
    """Make the task that has so many seconds from the request's arrival on; its body lies in `memory`, if in any.

    It is made of a registered `graph`, or of its own; `subject` is the name of the tensor that it is about. It came
    with this `credential`, where that may be needed.
    """
    return Task(
        call,
        body,
        asker.request_id,
        timeout,
        asker.arrived + timeout,
        media.sent,
        media.accepted,
        None if graph is None else graph.key,
        None if graph is None else graph.record,
        memory=memory,
        namespace=asker.caller.namespace,
        subject=subject,
        tenant=tenant,
        credential=credential,
    )


def task_of_upload(
    call: str,
    request: Request,
    timeout: float,
    upload: BodyBuffer,
    *,
    graph: Registered | None = None,
    subject: str | None = None,
) -> Task:
    """Make the task that a request is, once its body is there."""
    body, asker = upload.body, cast("Asker", request.state)
    tenant, credential = tenant_of_request(request), request.headers.get("authorization", "")
    return task_of(
        call,
        asker,
        tenant,
        timeout,
        request.state.media,
        body,
        upload.memory,
        graph=graph,
        subject=subject,
        credential=credential,
    )


def tenant_of_request(request: Request) -> str:
    """Whose share a request comes out of."""
    return tenant_of(request.state.caller, request.client.host if request.client else "")
