"""The server's documentation pages, in a browser that can reach no other host."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from selenium.webdriver import Chrome

from service.core.errors import KINDS
from tests.browser.chromium import browser
from tests.browser.playground import Playground
from tests.browser.seen import assert_quiet, shown
from tests.conftest import RunningServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def open_docs(page: Chrome, server: RunningServer) -> dict[str, str]:
    """Open the page, and return the text of each operation by its id."""
    page.get(server.url + "/docs")
    blocks = shown(page, ".opblock", len(operations(server)))
    return {block.get_attribute("id").rpartition("-")[2]: block.text for block in blocks}


def operations(server: RunningServer) -> dict[str, tuple[str, str]]:
    """Method and path of each operation of the document."""
    paths = httpx.get(server.url + "/openapi.json").json()["paths"]
    return {
        operation["operationId"]: (method, path)
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_every_operation_is_shown(page: Chrome, server: RunningServer) -> None:
    blocks = open_docs(page, server)
    assert set(blocks) == set(operations(server))
    for name, (method, path) in operations(server).items():
        plain = blocks[name].replace("\u200b", "")  # marks where a long path may break
        assert method.upper() in plain
        assert path in plain
    assert page.title == "gradserve"
    assert_quiet(page, server.url)


def test_call_can_be_tried_out(page: Chrome, server: RunningServer) -> None:
    open_docs(page, server)
    shown(page, "#operations-health-live .opblock-summary-control")[0].click()
    shown(page, "#operations-health-live .try-out__btn")[0].click()
    shown(page, "#operations-health-live .execute")[0].click()
    live = "#operations-health-live .live-responses-table"
    statuses = [element.text for element in shown(page, f"{live} tbody .response-col_status")]
    assert statuses == ["200"]
    assert json.loads(shown(page, f"{live} .response-col_description pre")[0].text) == {"status": "live"}
    assert_quiet(page, server.url)


def test_message_schemas_are_shown(page: Chrome, server: RunningServer) -> None:
    open_docs(page, server)
    shown(page, "#operations-compute-gradients .opblock-summary-control")[0].click()
    example = json.loads(shown(page, "#operations-compute-gradients .body-param__example")[0].text)
    assert example["graph"]["nodes"]
    names = {element.text for element in shown(page, ".models .json-schema-2020-12__title", 5)}
    assert {"GradientsRequest", "GradientsAnswer", "Problem"} <= names
    assert_quiet(page, server.url)


def test_keyless_server_shows_no_padlocks(
    page: Chrome, server: RunningServer, start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    selector = ".authorization__btn, .auth-wrapper"
    open_docs(page, server)
    assert not [each for each in page.find_elements("css selector", selector) if each.is_displayed()]
    assert_quiet(page, server.url)
    file = tmp_path / "keys"
    command = [sys.executable, "-m", "service", "keys", "add", "--keys-file", str(file), "page"]
    subprocess.run(command, capture_output=True, check=True)
    locked = start_server("--keys-file", str(file))
    page.get(locked.url + "/docs")
    shown(page, selector, 2)
    assert_quiet(page, locked.url)


def test_error_responses_are_folded(page: Chrome, server: RunningServer) -> None:
    open_docs(page, server)
    shown(page, "#operations-compute-gradients .opblock-summary-control")[0].click()
    (button,) = shown(page, "#operations-compute-gradients .folded")
    rows = "#operations-compute-gradients .responses-table tbody .response-col_status"
    assert [each.text for each in shown(page, rows)] == ["200"]
    assert button.text.startswith("Show ")
    button.click()
    statuses = {each.text for each in shown(page, rows, 5)}
    assert {"200", "400", "422", "503"} <= statuses
    assert button.text.startswith("Hide ")
    assert_quiet(page, server.url)


@pytest.mark.parametrize("path", ["/docs/errors", "/docs/errors/shape_mismatch"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_error_pages_fit_and_are_accessible(page: Chrome, server: RunningServer, path: str, dark: bool) -> None:
    seen = Playground(page, server.url)
    for width in (390, 768, 1440, 1920):
        seen.media(width, 844, dark=dark)
        page.get(server.url + path)
        assert seen.overflow() <= 0, width
        assert seen.axe() == []
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_errors_page_lists_every_error(page: Chrome, server: RunningServer) -> None:
    page.get(server.url + "/docs/errors")
    rows = {row.get_attribute("id"): row.text for row in shown(page, "tr[id]", len(KINDS))}
    assert set(rows) == set(KINDS)
    for code, kind in KINDS.items():
        assert {str(kind.status), code} <= set(rows[code].split())
        assert kind.title in rows[code]
    assert_quiet(page, server.url)


def test_error_page(page: Chrome, server: RunningServer) -> None:
    page.get(server.url + "/docs/errors")
    shown(page, "#shape_mismatch a")[0].click()
    assert shown(page, "h1")[0].text == "shape_mismatch"
    request, answer = (block.text for block in shown(page, "pre", 2))
    assert request.startswith("POST /v1/gradients")
    assert json.loads(answer)["type"] == "/docs/errors/shape_mismatch"
    assert_quiet(page, server.url)
