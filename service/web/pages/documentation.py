"""Pages for people. Their assets are in a package, so that nothing is loaded from the network."""

from __future__ import annotations

import json
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
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from engine import printable
from service.core.errors import ERRORS, Refusal
from service.web.pages.error_pages import ErrorPage, error_pages, format_json
from service.web.state import state_of

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
_ICON: Final = "/docs/mark.svg"
#: the mark of gradserve: three nodes of a graph that form a nabla, the sign of the gradient
MARK: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0b7268"/>'
    '<path d="M8 9.5h16L16 24z" fill="none" stroke="#fff" stroke-width="2.4" stroke-linejoin="round"/>'
    '<g fill="#fff"><circle cx="8" cy="9.5" r="3.3"/><circle cx="24" cy="9.5" r="3.3"/>'
    '<circle cx="16" cy="24" r="3.3"/></g></svg>\n'
)
#: most rendered pages in the cache, and most prefixes of the playground
_MAX_CACHED_PAGES: Final = 256
_MAX_CACHED_PREFIXES: Final = 16
_PLAYGROUND: Final = files(__package__) / "generated" / "playground"
#: style of the error pages: the colours and type scale of the playground
_STYLE: Final = """
:root { color-scheme: light dark; --text: #14191e; --quiet: #56606a; --paper: #fff; --line: #eef2f4; --border: #cfd6dc;
  --accent: #0b7268; --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaed; --quiet: #a4afb8; --paper: #101417; --line: #222930;
  --border: #39434c; --accent: #4fd1bd } }
* { box-sizing: border-box }
body { margin: 0; font: .9375rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: var(--text); background: var(--paper) }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; padding: .6rem 1.25rem;
  border-bottom: 1px solid var(--border) }
.brand { display: inline-flex; align-items: center; gap: .5rem; font-size: 1.35rem; font-weight: 700;
  color: var(--text); text-decoration: none }
.brand img { display: block }
nav { margin-left: auto; display: flex; gap: 1.25rem }
@media (max-width: 26rem) { header { padding: .5rem 1rem } nav { gap: .8rem; font-size: .8125rem } }
main { max-width: 60rem; margin: 0 auto; padding: .5rem 1.25rem 2.5rem }
h1 { font-size: 1.95rem; line-height: 1.2; margin: 1.2rem 0 .6rem; overflow-wrap: anywhere }
h2 { font-size: 1.35rem; margin: 1.6rem 0 .4rem }
p { margin: .5rem 0; max-width: 46rem }
a { color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
code, pre { font-family: var(--mono); font-size: .875em }
code { overflow-wrap: anywhere }
pre { background: var(--line); border: 1px solid var(--border); border-radius: 6px; padding: .8rem; overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin-top: 1rem }
th, td { padding: .4rem 1rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--border) }
th { color: var(--quiet); font-size: .8125rem }
@media (max-width: 40rem) {
  tr { display: grid; grid-template-columns: 3.5rem minmax(0, 1fr); padding: .4rem 0;
    border-bottom: 1px solid var(--border) }
  th, td { padding: 0; border: 0 }
  th:last-child { display: none }
  td:last-child { grid-column: 2 }
}
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
                "not_found",
                f"there is no error code “{printable(code)}”; {ERRORS} lists all codes",
                got=printable(code),
            )
        return rendered(code, request.state.prefix)

    if playground:
        add_playground(app)
    else:
        app.add_api_route("/", _redirect_to_docs, include_in_schema=False, response_class=RedirectResponse)
    app.add_api_route(_ICON, _mark, include_in_schema=False, response_class=Response)
    app.add_api_route("/docs", _swagger_page, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route(ERRORS, errors, include_in_schema=False, response_class=HTMLResponse)
    app.add_api_route(f"{ERRORS}/{{code}}", error, include_in_schema=False, response_class=HTMLResponse)
    app.mount(_ASSETS, Assets(directory=str(files("fastapi_swagger") / "resources")), name="assets")


async def _redirect_to_docs() -> RedirectResponse:
    return redirection("/docs", 307)  # temporary: with other settings, there is a page here


async def _mark() -> Response:
    return Response(MARK, media_type="image/svg+xml", headers={**_SECURITY_HEADERS, "Cache-Control": "max-age=86400"})


#: style of the API reference; Swagger UI has its own style sheet
_REFERENCE_STYLE: Final = """
body { margin: 0; background: #fff }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; padding: .6rem 1.25rem;
  border-bottom: 1px solid #cfd6dc; font: .9375rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
.brand { display: inline-flex; align-items: center; gap: .5rem; font-size: 1.35rem; font-weight: 700; color: #14191e;
  text-decoration: none }
nav { margin-left: auto; display: flex; gap: 1.25rem }
nav a { color: #0b7268 }
.swagger-ui .info { margin: 1.25rem 0 }
.swagger-ui .scheme-container { padding: 1rem 0; margin-bottom: 1rem }
@media (max-width: 26rem) { header { padding: .5rem 1rem } nav { gap: .8rem; font-size: .8125rem } }
.swagger-ui .folded { margin: 0 1.25rem 1.25rem; padding: .3rem .8rem; font: 600 .8125rem/1.5 sans-serif;
  color: #0b7268; background: #fff; border: 1px solid #0b7268; border-radius: 6px; cursor: pointer }
.swagger-ui .folded:focus-visible { outline: 2px solid #0b7268; outline-offset: 2px }
""".strip()
#: without keys, the padlocks of the operations and the button Authorize have no meaning
_KEYLESS_STYLE: Final = ".swagger-ui .auth-wrapper, .swagger-ui .authorization__btn { display: none }"
#: plugin of Swagger UI: error responses are folded behind a button
_FOLD_ERRORS: Final = """
const foldErrors = ({ React }) => ({
  wrapComponents: {
    responses: (Original) => (props) => {
      const [isOpen, setOpen] = React.useState(false);
      const results = props.responses.filter((_, code) => /^[23]/.test(code));
      const shown = isOpen ? props.responses : results;
      const count = props.responses.size - results.size;
      const words = `${isOpen ? "Hide" : "Show"} ${count} error responses`;
      const options = { className: "folded", type: "button", "aria-expanded": isOpen, onClick: () => setOpen(!isOpen) };
      const button = count ? React.createElement("button", options, words) : null;
      return React.createElement("div", null, React.createElement(Original, { ...props, responses: shown }), button);
    },
  },
});
""".strip()


async def _swagger_page(request: Request) -> HTMLResponse:
    return _reference(request.state.prefix, has_keys=state_of(request).settings.requires_keys)


@lru_cache(maxsize=_MAX_CACHED_PREFIXES)
def _reference(prefix: str, *, has_keys: bool) -> HTMLResponse:
    options = json.dumps({"url": f"{prefix}/openapi.json", "dom_id": "#swagger-ui", "deepLinking": True})
    script = (
        f"{_FOLD_ERRORS}\nSwaggerUIBundle({{ ...{options}, "
        "presets: [SwaggerUIBundle.presets.apis], plugins: [foldErrors] });"
    )
    style = _REFERENCE_STYLE if has_keys else f"{_REFERENCE_STYLE}\n{_KEYLESS_STYLE}"
    head = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>gradserve</title>",
        f'<link rel="icon" href="{prefix}{_ICON}">',
        f'<link rel="stylesheet" href="{prefix}{_ASSETS}/swagger-ui.css">',
        f"<style>\n{style}\n</style>",
        *_header(prefix),
        '<div id="swagger-ui"></div>',
        f'<script src="{prefix}{_ASSETS}/swagger-ui-bundle.js"></script>',
        f"<script>\n{script}\n</script>",
    )
    return page("\n".join(["<!doctype html>", '<html lang="en">', *head, "</html>", ""]))


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
    return f'<pre tabindex="0">{escape(text)}</pre>'  # wide examples scroll, by keyboard too


def _prose(text: str, prefix: str = "") -> str:
    """Convert text with `code` and links to HTML; links to our pages get the prefix."""
    coded = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)).replace("](/", f"]({prefix}/")
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', coded)


def _header(prefix: str) -> tuple[str, ...]:
    """Return the header of all pages: the mark, and links to the other pages."""
    return (
        "<header>",
        f'<a class="brand" href="{prefix}/"><img src="{prefix}{_ICON}" alt="" width="28" height="28">gradserve</a>',
        '<nav aria-label="Pages of this server">',
        f'<a href="{prefix}/docs">API reference</a> <a href="{prefix}{ERRORS}">Errors</a>',
        "</nav>",
        "</header>",
    )


def _html(title: str, prefix: str, *parts: str) -> str:
    head = (
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>gradserve: {title}</title>",
        f'<link rel="icon" href="{prefix}{_ICON}">',
        f"<style>\n{_STYLE}\n</style>",
        *_header(prefix),
        "<main>",
        f"<h1>{title}</h1>",
    )
    return "\n".join(["<!doctype html>", '<html lang="en">', *head, *parts, "</main>", "</html>", ""])
