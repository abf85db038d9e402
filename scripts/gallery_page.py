"""Pages of the gallery and of the examples: each graph with its description, picture and link to run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from scripts.drawings.drawn import DOCS
from scripts.drawings.examples import FOLDER as EXAMPLES
from scripts.drawings.examples import programs, summary
from scripts.drawings.gallery import gallery

GALLERY_PAGE: Final = DOCS / "gallery.md"
EXAMPLES_PAGE: Final = DOCS / "examples.md"
#: default address of a server
SERVER: Final = "http://127.0.0.1:8000"
#: fields in display order; a graph is listed under the first of its fields
FIELDS: Final = ("machine learning", "statistics", "optimisation", "physics", "finance", "graphics")
_GALLERY_HEAD: Final = """<!-- Written by `make docs` from examples/gallery. Edit these files, not this page. -->

# The gallery

Graphs from several fields. Each has results that were computed without gradserve; the tests compare the server's
results with them. The graphs are files in [examples/gallery](../examples/gallery), and examples in
[the playground](guide/playground.md). Start a server with `gradserve serve`, and the links on this page open them
there. An [importer](guide/importing.md) made the graphs tagged *imported* from models.
"""
_EXAMPLES_HEAD: Final = """<!-- Written by `make docs` from the programs of examples/. Edit these, not this page. -->

# The examples

These programs train, sample, integrate and solve equations on a server, and are written with [the Python
client](guide/ten-minutes-python.md). `python examples/NAME.py` starts a server by itself. Each picture shows the first
graph that the program sends, or, if that graph is large, the part around its last node.
"""


def gallery_page() -> str:
    """Return docs/gallery.md."""
    shown = gallery()
    parts = [_GALLERY_HEAD]
    for field in FIELDS:
        parts.append(f"## {field.capitalize()}\n")
        parts += [_graph(name, entry) for name, entry in shown.items() if _field(entry) == field]
    return "\n".join(parts)


def _field(entry: Mapping[str, Any]) -> str:
    tags: list[str] = entry["tags"]
    return next(tag for tag in tags if tag in FIELDS)


def _graph(name: str, entry: Mapping[str, Any]) -> str:
    picture = entry["drawing"].removeprefix("docs/")
    source, reference = entry["source"].rstrip("."), entry["expected"]["source"]
    return "\n\n".join(
        [
            f"### {entry['title']}",
            f"![{entry['title']}]({picture})",
            entry["paragraph"],
            f"[Open in the playground]({SERVER}/#gallery={name}) · [file](../examples/gallery/{name}.json)",
            f"*{', '.join(entry['tags'])}.* Source: {source}. Compared with: {reference}.\n",
        ]
    )


def examples_page() -> str:
    """Return docs/examples.md."""
    return "\n".join([_EXAMPLES_HEAD, *_programs()])


def _programs() -> Iterator[str]:
    for path in programs():
        picture = DOCS / EXAMPLES / f"{path.stem}.svg"
        shown = f"\n![The graph of {path.name}]({EXAMPLES}/{path.stem}.svg)\n" if picture.is_file() else ""
        yield f"## {path.stem}\n\n[{path.name}](../examples/{path.name}): {summary(path)}\n{shown}"
