"""Headers that protect a page in a browser: to load nothing else, and to let no other page near it.

By the rules of Mozilla's HTTP Observatory. Of transport security nothing is said: it would hold for all that the host
serves, under any port.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from hashlib import sha256
from typing import Final

from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_ALWAYS: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def policy_of(html: str) -> str:
    """The content security policy of a page: what the server itself has, and what stands in the page, by its hash."""
    found = _INLINE.findall(html)
    scripts, styles = (
        " ".join(["'self'", *(_hash(text) for kind, text in found if kind == wanted)]) for wanted in ("script", "style")
    )
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles}; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def page(html: str) -> HTMLResponse:
    """A page."""
    return HTMLResponse(html, headers={**_ALWAYS, "Content-Security-Policy": policy_of(html)})


def redirection(path: str, status: int) -> RedirectResponse:
    """The way to another page."""
    return RedirectResponse(path, status, headers=_ALWAYS)


class Assets(StaticFiles):
    """Files that pages load."""

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """The response of one file."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        if isinstance(response, FileResponse):
            response.headers.update(_ALWAYS)
        return response


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
