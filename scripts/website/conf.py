"""How Sphinx builds the site. It reads this file by itself; the sources are those that `assemble` writes.

Nothing comes from another host: the theme uses the reader's own fonts, and its scripts are files of the site.
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
myst_heading_anchors = 3  # as on other hosts of Markdown: links to sections work in both places
nitpicky = True
# What a page shows as refused, such as a body with NaN, is no JSON.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "gradserve"
html_static_path = ["static"]
html_css_files = ["code.css"]
html_js_files = ["code.js"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_search_summary = False  # a summary is fetched from its page, which a browser refuses for files
html_theme_options = {"navigation_with_keys": True}


class Request(Lexer):
    """An HTTP request as the pages write it: the first line, headers, an empty line and a JSON body."""

    name = "HTTP request"

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """Called by Pygments."""
        head, gap, body = text.partition("\n\n")
        yield 0, Name.Function, head + gap
        for at, kind, part in JsonLexer().get_tokens_unprocessed(body):  # type: ignore[no-untyped-call]
            yield len(head + gap) + at, kind, part


#: the navigation of pages that it does not list, by their folder and by what the theme asks for
_navigation: dict[tuple[str, str], str] = {}


def navigate(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Have the navigation made once for all pages of a folder that it does not list, such as those of sources.

    It marks the page on which it stands, and is the same on those that are not in it; to make it is most of their work.
    """
    if "orphan" not in app.env.metadata.get(page, {}):
        return
    make, folder = context["toctree"], page.rpartition("/")[0]

    def once(**options: Any) -> str:
        key = folder, repr(sorted(options.items()))
        if key not in _navigation:
            _navigation[key] = make(**options)
        return _navigation[key]

    context["toctree"] = once


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_lexer("http", Request)
    app.connect("html-page-context", navigate, priority=100)  # before the theme asks for it
