"""The whole service as an ASGI application, for any ASGI server: `uvicorn service.asgi:app`.

Its settings come from the environment. Its worker processes, its state and its keys live as long as the server's
lifespan. Another application can mount it, and has to run its lifespan:

    host = FastAPI(lifespan=app.lifespan)
    host.mount("/grad", app)

The additional limits of gradserve's own connections (slow heads, bodies and readers, connections) are the server's task
then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from service.app import composed
from service.core.errors import Refusal
from service.core.logs import set_up_own_logging
from service.core.settings import read_settings, removed_settings
from service.web.hosted import Hosted, PrefixedLinks
from service.web.middleware import Envelope

_logger = logging.getLogger("gradserve")

_NOT_STARTED: Final = (
    "gradserve has not been started: the ASGI server must run its lifespan (uvicorn --lifespan on); if you mount it in "
    "an application, create that with FastAPI(lifespan=app.lifespan), with app from service.asgi"
)
_FAILED: Final = "gradserve could not start; the cause is in the log"


class Application:
    """ASGI application with a lifespan; before and after that, it answers with the reason why it does not serve."""

    def __init__(self) -> None:
        self._served: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        else:
            await (self._served or _UNSTARTED_APP)(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, _: object = None) -> AsyncIterator[None]:
        """Run the lifespan, for an application that mounts this one.

        Raises RuntimeError with one sentence: for the settings, the device, the keys or the state.
        """
        if self._served is not None:
            raise RuntimeError("gradserve is already running; an application can have only one lifespan at a time")
        # There is no metrics listener, so /metrics is a route of the application.
        settings = read_settings().model_copy(update={"metrics_port": None})
        set_up_own_logging(settings)
        for warning in removed_settings(os.environ):
            _logger.warning(warning)
        with composed(settings) as parts:
            try:
                self._served = Hosted(await parts.lifetime.start(), settings, parts.recorder)
                yield
            finally:
                self._served = None
                await parts.lifetime.close(settings.shutdown_grace)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        """Run the lifespan by ASGI's protocol."""
        async with AsyncExitStack() as life:
            await receive()
            try:
                await life.enter_async_context(self.lifespan())
            except RuntimeError as error:
                await send({"type": "lifespan.startup.failed", "message": f"gradserve: {error}"})
                return
            except Exception:
                _logger.exception(_FAILED)
                await send({"type": "lifespan.startup.failed", "message": _FAILED})
                return
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse_unstarted(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise Refusal("not_ready", _NOT_STARTED)


_UNSTARTED_APP: Final = PrefixedLinks(Envelope(_refuse_unstarted))
app: Final = Application()
