"""A body that an application takes in parts, as one block of memory, each byte of it written once."""

from __future__ import annotations

from starlette.requests import Request

from service.errors import Refusal
from service.pool.pool import Pool
from service.settings import Settings
from service.web.body_buffer import BodyBuffer
from service.web.head import most_bytes


async def upload_of(request: Request, pool: Pool, settings: Settings, tenant: str) -> BodyBuffer:
    """The body, in memory of the pool where it is large, out of a tenant's share.

    Raises what the guard and the pool raise, and ClientDisconnect; Refusal (bad_request_framing).
    """
    announced = request.headers.get("content-length", "")
    most = int(announced) if announced.isdecimal() else most_bytes(request.state.media, settings)
    upload = BodyBuffer(pool.allocate, most, tenant)
    try:
        async for part in request.stream():
            if upload.got + len(part) > most:
                raise Refusal("bad_request_framing", f"the body has more bytes than the {most} that were announced")
            upload.put(part)
        if announced.isdecimal() and upload.got != most:
            raise Refusal("bad_request_framing", f"the body has {upload.got} bytes, but {most} were announced")
    except BaseException:
        upload.give_back()
        raise
    return upload
