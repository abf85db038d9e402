"""The playground: the page at `/`, where a request is written, drawn and run. `make playground` builds its files."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse

from service.pages.protection import Assets, page

#: under /docs, as what else pages load: that is open where keys are asked for
_ASSETS: Final = "/docs/playground"
_FOLDER: Final = files(__package__) / "playground"
_KEPT: Final = 16  # prefixes that the page is kept for


def add_playground(app: FastAPI) -> None:
    """Serve the page at `/`, and its script, style sheet and examples."""
    drawn = (_FOLDER / "index.html").read_text(encoding="utf-8")

    @lru_cache(maxsize=_KEPT)
    def under(prefix: str) -> HTMLResponse:
        return page(drawn.replace("{prefix}", prefix))

    async def start(request: Request) -> HTMLResponse:
        return under(request.state.prefix)

    app.add_api_route("/", start, include_in_schema=False, response_class=HTMLResponse)
    app.mount(_ASSETS, Assets(directory=str(_FOLDER)), name="playground")
