"""A body as one block of memory, each byte of it written once."""

from __future__ import annotations

import numpy as np
from starlette.requests import Request

from engine import HostArray
from service.errors import Refusal


async def whole_body(request: Request) -> bytes | HostArray:
    """The body, in a buffer of the announced length; as pieces that are joined where no length is announced.

    Raises what the guard raises, and ClientDisconnect; Refusal (bad_request_framing).
    """
    announced = request.headers.get("content-length", "")
    if not announced.isdecimal():
        return await request.body()
    # Not a bytearray, which writes zeros: what is announced and never sent takes addresses, but no memory.
    buffer, filled = np.empty(int(announced), np.uint8), 0
    async for piece in request.stream():
        room = buffer[filled : filled + len(piece)]
        room[:] = np.frombuffer(piece, np.uint8)[: len(room)]
        filled += len(piece)
    if filled != len(buffer):
        raise Refusal("bad_request_framing", f"the body has {filled} bytes, but {len(buffer)} were announced")
    return buffer
