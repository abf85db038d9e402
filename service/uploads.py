"""A body as one block of memory, each byte of it written once."""

from __future__ import annotations

from starlette.requests import Request

from service.errors import Refusal


async def whole_body(request: Request) -> bytes | bytearray:
    """The body, in a buffer of the announced length; as pieces that are joined where no length is announced.

    Raises what the guard raises, and ClientDisconnect.
    """
    announced = request.headers.get("content-length", "")
    if not announced.isdecimal():
        return await request.body()
    buffer, filled = bytearray(int(announced)), 0
    async for piece in request.stream():
        buffer[filled : filled + len(piece)] = piece
        filled += len(piece)
    if filled != len(buffer):
        raise Refusal("bad_request_framing", f"the body has {filled} bytes, but {len(buffer)} were announced")
    return buffer
