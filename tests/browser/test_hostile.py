"""What a page from elsewhere gets from a server on this machine, in a real browser: nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import browser
from tests.browser.hostile import ATTEMPTS, elsewhere
from tests.conftest import RunningServer

pytestmark = pytest.mark.slow

PATIENCE = 60
#: a name that its owner lets lead to this machine
REBOUND = "evil.example"
STORED = {
    "graph": {"nodes": [{"op": "full", "attrs": {"shape": [], "fill": 1}}]},
    "store": [{"node": 0, "tensor_id": "planted"}],
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with browser(tmp_path_factory.mktemp("hostile"), f"MAP {REBOUND} 127.0.0.1", "MAP localhost 127.0.0.1") as opened:
        yield opened


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with elsewhere() as found:
        yield found


def kept(server: RunningServer) -> object:
    """What the server keeps for callers."""
    return httpx.get(server.url + "/v1/tensors").json()["tensors"], httpx.get(server.url + "/v1/graphs").json()[
        "graphs"
    ]


def tried(page: Chrome, base: str) -> dict[str, str]:
    """What the page sees of each of its attempts on the server at `base`."""
    script = f"const BODY = {json.dumps(json.dumps(STORED))}; const URL = '{base}/v1/forward';"
    script += f"const OPS = '{base}/v1/ops'; const TENSOR = '{base}/v1/tensors/planted';"
    attempts = ",".join(f"attempt({json.dumps(name)}, {code})" for name, code in ATTEMPTS.items())
    page.set_script_timeout(PATIENCE)
    seen: dict[str, str] = page.execute_async_script(
        f"{script} const done = arguments[0]; Promise.all([{attempts}]).then(() => done(tried));"
    )
    return seen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", REBOUND])
def test_a_page_on_another_port_gets_nothing(page: Chrome, server: RunningServer, port: int, host: str) -> None:
    """Of the same site, of another one, and of a stranger's name."""
    before = kept(server)
    page.get(f"http://{host}:{port}/")
    seen = tried(page, server.url)
    assert set(seen) == set(ATTEMPTS)
    for name, what in seen.items():
        assert what in ("failed", "sent", "opaque 0 "), (name, what)
    assert kept(server) == before
    counts = httpx.get(server.url + "/metrics").text
    assert not re.search(r'gradserve_requests_total\{[^}]*"/v1/forward"[^}]*status="2', counts)


def test_a_name_that_is_rebound_to_this_machine_gets_nothing(page: Chrome, server: RunningServer) -> None:
    """For the browser, page and server are one: only the name tells."""
    port = server.address[1]
    before = kept(server)
    page.get(f"http://{REBOUND}:{port}/v1/ops")
    assert json.loads(page.find_element(By.TAG_NAME, "pre").text)["code"] == "misdirected"
    page.execute_script(
        "window.tried = {}; window.attempt = async (name, promise) => { "
        "try { const r = await promise; tried[name] = r && r.text ? await r.text() : 'sent' } "
        "catch (error) { tried[name] = 'failed' } }; "
        "const f = document.createElement('iframe'); f.name = 'frame'; document.body.append(f);"
    )
    seen = tried(page, f"http://{REBOUND}:{port}")
    answered = [json.loads(what)["code"] for what in seen.values() if what.startswith("{")]
    assert len(answered) >= 5
    assert set(answered) == {"misdirected"}
    assert kept(server) == before


def test_its_own_page_works_and_a_link_to_it_too(page: Chrome, server: RunningServer, port: int) -> None:
    page.get(f"http://localhost:{port}/")
    page.execute_script(
        "const a = document.createElement('a'); a.href = arguments[0]; a.textContent = 'docs'; a.id = 'link';"
        "document.body.append(a);", server.url + "/docs"
    )  # fmt: skip
    page.find_element(By.ID, "link").click()
    wait = WebDriverWait(page, PATIENCE)
    wait.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "#operations-health-live"), "the page is not there")
    page.set_script_timeout(PATIENCE)
    status = page.execute_async_script(
        "fetch('/v1/forward', {method: 'POST', body: arguments[0], headers: {'Content-Type': 'application/json'}})"
        ".then(r => arguments[1](r.status))", json.dumps({"graph": STORED["graph"]})
    )  # fmt: skip
    assert status == 200


def test_no_page_frames_it(page: Chrome, server: RunningServer, port: int) -> None:
    page.get(f"http://127.0.0.1:{port}/")
    page.execute_script("document.getElementsByName('frame')[0].src = arguments[0]", server.url + "/docs")
    page.switch_to.frame("frame")
    assert not page.find_elements(By.CSS_SELECTOR, "#swagger-ui")
    page.switch_to.default_content()
