"""The site: built without warnings, complete, and usable in a browser from a folder without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, Keys

from engine import registry
from scripts.website.assemble import assemble
from scripts.website.ops import place_of
from service.core.errors import KINDS
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
    """The site's folder, and the finished process that built it."""
    target = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "scripts.website", str(target)]
    return target, subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def site(built: tuple[Path, subprocess.CompletedProcess[str]]) -> str:
    """The address of the site's folder."""
    return built[0].as_uri()


def test_site_builds_completely(built: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    """The build fails on a Sphinx warning, on a part from another host, and on a broken link."""
    folder, run = built
    assert run.returncode == 0, run.stdout + run.stderr
    decisions = [f"adr/{path.stem}" for path in (ROOT / "docs/adr").glob("0*.md")]
    ops = [place_of(name).removesuffix(".md") for name in registry().ops]
    expected = ["index", *decisions, *ops, *(f"errors/{code}" for code in KINDS)]
    assert not [page for page in expected if not (folder / f"{page}.html").is_file()]
    assert (folder / "_images/architecture.svg").is_file()


@pytest.mark.smoke
def test_small_subset_of_pages_builds(tmp_path: Path) -> None:
    sources, target = tmp_path / "sources", tmp_path / "site"
    assemble(sources)
    few = {"index", "guide/first-gradient", "ops/relu", "errors/bad_reference"}
    for path in [*sources.rglob("*.md"), *sources.rglob("*.rst")]:
        if path.relative_to(sources).with_suffix("").as_posix() not in few:
            path.unlink()
    options = ["--quiet", "--conf-dir", ROOT / "scripts" / "website"]
    subprocess.run([sys.executable, "-m", "sphinx", *options, sources, target], check=True, capture_output=True)
    assert few <= {path.relative_to(target).with_suffix("").as_posix() for path in target.rglob("*.html")}


def test_site_works_from_a_folder(page: Chrome, site: str) -> None:
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


def test_images_of_the_front_page_are_shown(page: Chrome, site: str) -> None:
    page.get(f"{site}/index.html")
    images = page.find_elements("css selector", "article img")
    assert (images[0].get_attribute("src") or "").endswith("playground.png")
    assert images[0].find_element("xpath", "ancestor::a").get_attribute("href") == f"{site}/guide/playground.html"
    for image in images:
        page.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", image)
        assert image.is_displayed()
        assert int(image.get_attribute("naturalWidth") or 0) > 0


def test_search_works_without_a_server(page: Chrome, site: str) -> None:
    page.get(f"{site}/search.html?q=softmax")
    results = {link.text for link in shown(page, "#search-results li a", 2)}
    assert "softmax" in results
    assert_quiet(page, site)


def test_browser_reaches_no_other_host(page: Chrome) -> None:
    """Otherwise a page that loads parts from another host would pass."""
    with pytest.raises(WebDriverException, match="ERR_NAME_NOT_RESOLVED"):
        page.get("http://example.com/")
    traffic(page)
    page.get_log("browser")


def test_code_blocks_have_copy_buttons_and_tabs(page: Chrome, site: str) -> None:
    page.get(f"{site}/ops/layer_norm.html")
    blocks = page.find_elements("css selector", "pre")
    command, program = (block.get_attribute("textContent") or "" for block in blocks[:2])
    assert command.startswith("curl")
    assert program.startswith("import json")
    assert [tab.text for tab in shown(page, ".code-tabs [role='tab']", 2)] == ["curl", "Python"]
    assert len(shown(page, ".code-tabs [role='tabpanel']")) == 1
    shown(page, ".code-tabs [role='tab'][aria-selected='true']")[0].send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element.text == "Python"
    assert shown(page, ".code-tabs [role='tabpanel']")[0].text.startswith("import json")
    copied = "navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve() }"
    page.execute_script(copied)
    shown(page, ".code-tabs .copy-code")[0].click()
    assert page.execute_script("return window.copied") == program
    assert len(page.find_elements("css selector", ".copy-code")) == len(blocks)


@pytest.mark.parametrize("width", [400, 800, 1280, 1600])
def test_code_is_not_cut_off_beside_a_free_margin(page: Chrome, site: str, width: int) -> None:
    """Code that scrolls uses the full width, and no page scrolls sideways."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    for name in ("guide/ten-minutes-python", "guide/calls/gradients", "ops/layer_norm", "gallery"):
        page.get(f"{site}/{name}.html")
        content, window = page.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert content <= window, name
        cut = page.execute_script(
            "return [...document.querySelectorAll('pre')].filter(p => p.scrollWidth > p.clientWidth).length"
        )
        free = page.execute_script(
            "const [main, content] = ['.main', '.content'].map(e => document.querySelector(e).getBoundingClientRect());"
            "const toc = document.querySelector('.toc-drawer').getBoundingClientRect();"
            "return main.width - content.width - (toc.right <= innerWidth ? toc.width : 0)"
        )
        assert not cut or free < 40, f"{name}: {cut} blocks are cut off, {free} pixels are free"
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_gallery_is_shown(page: Chrome, site: str) -> None:
    page.get(f"{site}/gallery.html")
    count = len(list((ROOT / "examples" / "gallery").glob("*.json")))
    pictures = shown(page, "#the-gallery section section img", count)
    assert len(pictures) == count
    page.execute_script("arguments[0].scrollIntoView()", pictures[-1])
    assert int(pictures[-1].get_attribute("naturalWidth") or 0) > 0
    links = [each.get_attribute("href") for each in page.find_elements("css selector", "a[href*='#gallery=']")]
    names = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.json")}
    assert {link.rpartition("=")[2] for link in links} == names
