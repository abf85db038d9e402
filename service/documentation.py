"""The pages for people. Their assets come with a package: nothing is loaded from the network."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from service.errors import KINDS

_ASSETS: Final = "/docs/assets"


def add_pages(app: FastAPI) -> None:
    """Serve `/docs`, its assets, and the page that explains the error codes."""
    app.add_api_route("/docs", _docs, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route("/docs/errors", _errors, include_in_schema=False, response_class=HTMLResponse)
    app.mount(_ASSETS, StaticFiles(directory=str(files("fastapi_swagger") / "resources")), name="assets")


async def _docs() -> HTMLResponse:
    return get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="gradserve",
        swagger_js_url=f"{_ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{_ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{_ASSETS}/favicon-32x32.png",
    )


async def _errors() -> HTMLResponse:
    rows = "".join(
        f'<tr id="{code}"><td>{kind.status}</td><td><code>{code}</code></td><td>{kind.title}.</td></tr>'
        for code, kind in KINDS.items()
    )
    return HTMLResponse(
        f"<!doctype html><html lang=en><title>gradserve: errors</title><h1>Errors</h1><table>{rows}</table></html>"
    )
