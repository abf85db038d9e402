from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

#: bytes that are copied, cleared or unmapped on the event loop, in less than 0.1 ms, or hashed, in less than 1 ms; a
#: thread takes about as long to be woken, and everybody else on the loop waits meanwhile
BYTES_ON_LOOP: Final = 1 << 20


def offload(loop: asyncio.AbstractEventLoop, nbytes: int, work: Callable[[], object]) -> asyncio.Future[object] | None:
    """Do `work` on so many bytes: on a thread where they are many, and the future tells when it is done.

    None where it has been done already; what it raised then, this raises.
    """
    if nbytes <= BYTES_ON_LOOP:
        work()
        return None
    return loop.run_in_executor(None, work)
