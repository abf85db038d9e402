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
_ICON: Final = f"{_ASSETS}/favicon-32x32.png"
_ERRORS_HEAD: Final = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>gradserve: errors</title>
<link rel="icon" href="{_ICON}">
<style>
body {{ font: 1rem/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
th, td {{ padding: .2rem 1rem .2rem 0; text-align: left }}
tr:target {{ background: #ffefb0 }}
</style>
<h1>Errors</h1>
<p>What the <code>code</code> of a refusal means. Its <code>detail</code> says what was wrong with the request.
The calls, each with its errors, are on <a href="/docs">the page of the calls</a>.</p>
"""


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
        swagger_favicon_url=_ICON,
    )


async def _errors() -> HTMLResponse:
    rows = "".join(
        f'<tr id="{code}"><td>{kind.status}</td><td><code>{code}</code></td><td>{kind.title}.</td></tr>'
        for code, kind in KINDS.items()
    )
    return HTMLResponse(f"{_ERRORS_HEAD}<table><tr><th>status<th>code<th>meaning</tr>{rows}</table></html>")
