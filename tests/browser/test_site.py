"""The site: built without a warning, whole, and as a browser shows it from a folder, without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome

from engine import registry
from service.errors import KINDS
from tests.browser.chromium import browser, traffic
from tests.browser.seen import assert_quiet, follow, shown
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The site's folder, and how building it ended."""
    target = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "scripts.website", str(target)]
    return target, subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def site(built: tuple[Path, subprocess.CompletedProcess[str]]) -> str:
    """The address of the site's folder."""
    return built[0].as_uri()


def test_the_site_is_built_and_whole(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """The run fails on a warning of Sphinx, on a part from another host, and on a link to nothing."""
    folder, run = built
    assert run.returncode == 0, run.stdout + run.stderr
    decisions = [f"adr/{path.stem}" for path in (ROOT / "docs/adr").glob("0*.md")]
    ops = [f"ops/{name}" for name in registry().ops]
    expected = ["index", *decisions, *ops, *(f"errors/{code}" for code in KINDS)]
    assert not [page for page in expected if not (folder / f"{page}.html").is_file()]
    assert (folder / "_images/architecture.svg").is_file()


def test_the_site_in_a_folder(page: Chrome, site: str) -> None:
    page.get(f"{site}/index.html")
    assert shown(page, "article h1")[0].text.startswith("gradserve")
    follow(page, "a[href='architecture.html']")
    picture = shown(page, "img[src$='architecture.svg']")[0]
    assert int(picture.get_attribute("naturalWidth")) > 0
    follow(page, "a[href='ops/index.html']")
    follow(page, "article td a")
    request, answer = (block.text for block in shown(page, "pre", 2))
    assert request.startswith("curl")
    assert json.loads(answer)["gradients"]
    assert_quiet(page, site)


def test_the_site_is_searched_without_a_server(page: Chrome, site: str) -> None:
    page.get(f"{site}/search.html?q=softmax")
    found = {link.text for link in shown(page, "#search-results li a", 2)}
    assert "softmax" in found
    assert_quiet(page, site)


def test_this_browser_reaches_no_other_host(page: Chrome) -> None:
    """Else a page that loads its parts from elsewhere would pass."""
    with pytest.raises(WebDriverException, match="ERR_NAME_NOT_RESOLVED"):
        page.get("http://example.com/")
    traffic(page)
    page.get_log("browser")
