"""Pages for people. Their assets are in a package, so that nothing is loaded from the network."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from engine import printable
from service.core.errors import ERRORS, Refusal
from service.web.pages.error_pages import ErrorPage, error_pages, format_json

_INLINE_ELEMENT: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
#: headers that isolate a page: it loads nothing else, and no other page can embed it. They follow Mozilla's HTTP
#: Observatory. Strict-Transport-Security is left out: it would apply to everything on the host, on any port
_SECURITY_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPENING: Final = (
    "Every error response has a `code`. Its `detail` says what was wrong with the request, and its `type` links to the "
    "page of the code. The errors of each call are in [the API reference](/docs)."
)
_ASSETS: Final = "/docs/assets"
_ICON: Final = f"{_ASSETS}/favicon-32x32.png"
#: most rendered pages in the cache, and most prefixes of the playground
_MAX_CACHED_PAGES: Final = 256
_MAX_CACHED_PREFIXES: Final = 16
_PLAYGROUND: Final = files(__package__) / "generated" / "playground"
_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
th, td { padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top }
pre { background: #8882; padding: .8rem; overflow-x: auto }
""".strip()


def policy_of(html: str) -> str:
    """Write the content security policy of a page: the server's files, and inline scripts and styles by hash."""
    sources = {"script": "'self'", "style": "'self'"}
    for kind, text in _INLINE_ELEMENT.findall(html):
        sources[kind] += f" 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    return (
        f"default-src 'none'; script-src {sources['script']}; style-src {sources['style']}; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def page(html: str) -> HTMLResponse:
    """Return the response of a page."""
    return HTMLResponse(html, headers={**_SECURITY_HEADERS, "Content-Security-Policy": policy_of(html)})


def redirection(path: str, status: int) -> RedirectResponse:
    """Redirect to another page."""
    return RedirectResponse(path, status, headers=_SECURITY_HEADERS)


class Assets(StaticFiles):
    """Files that pages load."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return the response of one file."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if isinstance(response, FileResponse):
            response.headers.update(_SECURITY_HEADERS)
        return response


def add_playground(app: FastAPI) -> None:
    """Serve the playground at `/`, where people write, draw and run a request, and its files.

    `make playground` builds the files. They are under /docs, like other assets, since those paths need no key.
    """
    template = (_PLAYGROUND / "index.html").read_text(encoding="utf-8")

    @lru_cache(maxsize=_MAX_CACHED_PREFIXES)
    def under(prefix: str) -> HTMLResponse:
        return page(template.replace("{prefix}", prefix))

    async def start(request: Request) -> HTMLResponse:
        return under(request.state.prefix)

    app.add_api_route("/", start, include_in_schema=False, response_class=HTMLResponse)
    app.mount("/docs/playground", Assets(directory=str(_PLAYGROUND)), name="playground")


def add_pages(app: FastAPI, document: Mapping[str, Any], *, playground: bool) -> None:
    """Serve `/docs`, its assets, and the pages of the error codes, whose examples are from this document.

    At `/` is the playground, or a redirect to `/docs`.
    """
    pages = error_pages(dict(document))

    @lru_cache(maxsize=_MAX_CACHED_PAGES)
    def rendered(code: str | None, prefix: str) -> HTMLResponse:
        return page(_index(pages.values(), prefix) if code is None else _page(pages[code], prefix))

    async def errors(request: Request) -> HTMLResponse:
        return rendered(None, request.state.prefix)

    async def error(request: Request) -> HTMLResponse:
        code = request.path_params["code"]
        if code not in pages:
            raise Refusal(
                "not_found", f"there is no code “{printable(code)}”; {ERRORS} lists them", got=printable(code)
            )
        return rendered(code, request.state.prefix)

    if playground:
        add_playground(app)
    else:
        app.add_api_route("/", _redirect_to_docs, include_in_schema=False, response_class=RedirectResponse)
    app.add_api_route("/docs", _swagger_page, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route(ERRORS, errors, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route(f"{ERRORS}/{{code}}", error, include_in_schema=False, response_class=HTMLResponse)
    app.mount(_ASSETS, Assets(directory=str(files("fastapi_swagger") / "resources")), name="assets")


async def _redirect_to_docs() -> RedirectResponse:
    return redirection("/docs", 307)  # temporary: with other settings, there is a page here


async def _swagger_page(request: Request) -> HTMLResponse:
    prefix = request.state.prefix
    rendered = get_swagger_ui_html(
        openapi_url=f"{prefix}/openapi.json",
        title="gradserve",
        swagger_js_url=f"{prefix}{_ASSETS}/swagger-ui-bundle.js",
        swagger_css_url=f"{prefix}{_ASSETS}/swagger-ui.css",
        swagger_favicon_url=f"{prefix}{_ICON}",
    )
    return page(bytes(rendered.body).decode())


def _index(pages: Iterable[ErrorPage], prefix: str) -> str:
    rows = "".join(
        f'<tr id="{page.code}"><td>{page.kind.status}<td>'
        f'<a href="{prefix}{ERRORS}/{page.code}"><code>{page.code}</code></a>'
        f"<td>{page.kind.title}.{' (reserved)' if page.reserved else ''}"
        for page in pages
    )
    return _html(
        "Errors", prefix, f"<p>{_prose(OPENING, prefix)}", f"<table><tr><th>status<th>code<th>meaning{rows}</table>"
    )


def _page(page: ErrorPage, prefix: str) -> str:
    example = []
    if page.example is not None:
        example_request = page.example.request
        request = (
            f"<p>This request:{_block(example_request.text)}<p>gets this response:"
            if example_request
            else "<p>Response:"
        )
        example = [f"<h2>Example</h2>{request}{_block(format_json(page.example.problem))}"]
    return _html(
        page.code,
        prefix,
        f"<p><strong>{page.kind.status}: {page.kind.title}.</strong>",
        *([f"<p>{page.where}"] if page.reserved else []),
        f"<p>{_prose(page.explanation.meaning, prefix)}",
        f"<h2>What to do</h2><p>{_prose(page.explanation.remedy, prefix)}",
        *example,
        *([] if page.reserved else [f"<h2>Where</h2><p>{_prose(page.where, prefix)}"]),
        f'<p><a href="{prefix}{ERRORS}">All codes</a>',
    )


def _block(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _prose(text: str, prefix: str = "") -> str:
    """Convert text with `code` and links to HTML; links to our pages get the prefix."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)).replace("](/", f"]({prefix}/")
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', coded)


def _html(title: str, prefix: str, *parts: str) -> str:
    head = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>gradserve: {title}</title>",
        f'<link rel="icon" href="{prefix}{_ICON}">',
        f"<style>\n{_STYLE}\n</style>",
        f"<h1>{title}</h1>",
    )
    return "\n".join(["<!doctype html>", '<html lang="en">', *head, *parts, "</html>", ""])
