"""Sphinx configuration of the site. The sources are those that `assemble` writes.

Nothing is loaded from another host: the theme uses the reader's own fonts, and its scripts are files of the site.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

from pygments.lexer import Lexer
from pygments.lexers.data import JsonLexer
from pygments.token import Name

if TYPE_CHECKING:
    from pygments.token import _TokenType
    from sphinx.application import Sphinx

project = "gradserve"
author = "The gradserve authors"
copyright = author
version = release = installed("gradserve")

extensions = ["myst_parser"]
myst_heading_anchors = 3  # as on GitHub and similar hosts, so that links to sections work in both places
nitpicky = True
# Pages show bodies that the server refuses, such as one with NaN, which are not valid JSON.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "gradserve"
html_static_path = ["static"]
html_css_files = ["code.css"]
html_js_files = ["code.js"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # summaries are fetched from their pages, which browsers refuse for local files
html_theme_options = {"navigation_with_keys": True}


class Request(Lexer):
    """HTTP request in the form used by the pages: the first line, headers, an empty line and a JSON body."""

    name = "HTTP request"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """Yield the tokens. Pygments calls this."""
        head, gap, body = text.partition("\n\n")
        yield 0, Name.Function, head + gap
        for offset, kind, part in JsonLexer().get_tokens_unprocessed(body):  # type: ignore[no-untyped-call]
            yield len(head + gap) + offset, kind, part


#: navigation of pages that it does not list, by their folder and the theme's options
_navigation: dict[tuple[str, str], str] = {}


def navigate(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Cache the navigation of pages that it does not list, such as sources, by folder.

    The navigation marks the current page, so it is the same on all pages that are not in it. Building it is most of the
    work of such a page.
    """
    if "orphan" not in app.env.metadata.get(page, {}):
        return
    build, folder = context["toctree"], page.rpartition("/")[0]

    def cached(**options: Any) -> str:
        key = folder, repr(sorted(options.items()))
        if key not in _navigation:
            _navigation[key] = build(**options)
        return _navigation[key]

    context["toctree"] = cached


def setup(app: Sphinx) -> None:
    """Register the lexer and the navigation. Sphinx calls this."""
    app.add_lexer("http", Request)
    app.connect("html-page-context", navigate, priority=100)  # before the theme builds it
