"""The programs on the pages about clients run, and print the output that the pages show.

These tests run if a client can be built without downloads. `make test-clients` downloads the rest and runs them too.
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
def test_page_program_prints_the_shown_output(page: Page, tmp_path: Path) -> None:
    """Each program has its own server, so that it finds no tensors of another one."""
    project = PROJECTS[page.language]
    if absent := lacking(project.needs):
        pytest.skip(f"needs {', '.join(absent)}")
    client = built(page.language).folder if page.language in LANGUAGES else CLIENTS
    with running_server("--device", "cpu", "--workers", "1") as url:
        assert project.printed(page, client, tmp_path, url) == page.shown


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_client_has_a_guide_and_a_readme_program(name: str) -> None:
    paths = {page.path for page in PAGES if page.language == name}
    assert {f"docs/guide/ten-minutes-{name}.md", f"clients/{name}/README.md"} <= paths


def test_every_guide_page_is_run() -> None:
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "guide").glob("ten-minutes-*.md")}
    assert written <= {page.path for page in PAGES}
