"""The pages about clients are true: their programs are made and run, and print what the pages show.

Here where a client is built with what is there; `make test-clients`, which fetches what is not, has this as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.conformance.languages import CLIENTS, LANGUAGES
from clients.tools import lacking
from examples.server import running_server
from tests.clients.building import built
from tests.clients.pages import PAGES, PROJECTS, Page
from tests.docs.marked import ROOT

SMOKES = {"docs/guide/ten-minutes-curl.md", "docs/guide/ten-minutes-python.md"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.smoke] * (page.path in SMOKES)) for page in PAGES], ids=str
)
def test_the_program_of_a_page(page: Page, tmp_path: Path) -> None:
    """Each on a server of its own: what it keeps, it finds nothing of."""
    project = PROJECTS[page.language]
    if absent := lacking(project.needs):
        pytest.skip(f"needs {', '.join(absent)}")
    client = built(page.language).folder if page.language in LANGUAGES else CLIENTS
    with running_server("--device", "cpu", "--workers", "1") as url:
        assert project.printed(page, client, tmp_path, url) == page.shown


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_client_has_ten_minutes_and_ten_lines(name: str) -> None:
    known = {page.path for page in PAGES if page.language == name}
    assert {f"docs/guide/ten-minutes-{name}.md", f"clients/{name}/README.md"} <= known


def test_every_page_is_run() -> None:
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "guide").glob("ten-minutes-*.md")}
    assert written <= {page.path for page in PAGES}
