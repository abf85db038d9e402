"""Attacks by a web page on a server on this machine, in a real browser: requests, and links to the playground."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import browser, traffic
from tests.browser.hostile import ATTEMPTS, hostile_server
from tests.browser.playground import Playground, fragment
from tests.conftest import RunningServer

pytestmark = pytest.mark.slow

PATIENCE = 60
#: a name that its owner rebinds to this machine
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
    with hostile_server() as number:
        yield number


def stored(server: RunningServer) -> object:
    """The tensors and graphs that the server stores."""
    return httpx.get(server.url + "/v1/tensors").json()["tensors"], httpx.get(server.url + "/v1/graphs").json()[
        "graphs"
    ]


def run_attempts(page: Chrome, base: str) -> dict[str, str]:
    """Run all attempts of the page on the server at `base`, and return what it sees of each."""
    script = f"const BODY = {json.dumps(json.dumps(STORED))}; const URL = '{base}/v1/forward';"
    script += f"const OPS = '{base}/v1/ops'; const TENSOR = '{base}/v1/tensors/planted';"
    attempts = ",".join(f"attempt({json.dumps(name)}, {code})" for name, code in ATTEMPTS.items())
    page.set_script_timeout(PATIENCE)
    seen: dict[str, str] = page.execute_async_script(
        f"{script} const done = arguments[0]; Promise.all([{attempts}]).then(() => done(tried));"
    )
    return seen


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", REBOUND])
def test_page_on_another_port_is_blocked(page: Chrome, server: RunningServer, port: int, host: str) -> None:
    """The same site, another site, and a stranger's name."""
    before = stored(server)
    page.get(f"http://{host}:{port}/")
    seen = run_attempts(page, server.url)
    assert set(seen) == set(ATTEMPTS)
    for name, outcome in seen.items():
        assert outcome in ("failed", "sent", "opaque 0 "), (name, outcome)
    assert stored(server) == before
    counts = httpx.get(server.url + "/metrics").text
    assert not re.search(r'gradserve_requests_total\{[^}]*"/v1/forward"[^}]*status="2', counts)


def test_dns_rebinding_is_blocked(page: Chrome, server: RunningServer) -> None:
    """The browser takes page and server for one origin; only the name differs."""
    port = server.address[1]
    before = stored(server)
    page.get(f"http://{REBOUND}:{port}/v1/ops")
    assert json.loads(page.find_element(By.TAG_NAME, "pre").text)["code"] == "misdirected"
    page.execute_script(
        "window.tried = {}; window.attempt = async (name, promise) => { "
        "try { const r = await promise; tried[name] = r && r.text ? await r.text() : 'sent' } "
        "catch (error) { tried[name] = 'failed' } }; "
        "const f = document.createElement('iframe'); f.name = 'frame'; document.body.append(f);"
    )
    seen = run_attempts(page, f"http://{REBOUND}:{port}")
    answered = [json.loads(outcome)["code"] for outcome in seen.values() if outcome.startswith("{")]
    assert len(answered) >= 5
    assert set(answered) == {"misdirected"}
    assert stored(server) == before


def test_own_page_works_when_opened_by_a_link(page: Chrome, server: RunningServer, port: int) -> None:
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


def test_page_cannot_be_framed(page: Chrome, server: RunningServer, port: int) -> None:
    page.get(f"http://127.0.0.1:{port}/")
    page.execute_script("document.getElementsByName('frame')[0].src = arguments[0]", server.url + "/docs")
    page.switch_to.frame("frame")
    assert not page.find_elements(By.CSS_SELECTOR, "#swagger-ui")
    page.switch_to.default_content()


def storing(name: str, fill: float = 7) -> dict[str, object]:
    """Return a request that stores a tensor, and whose first node has this name."""
    tensor = {"dtype": "float64", "shape": [2], "data": [fill, fill]}
    return {
        "graph": {"nodes": [{"op": "parameter", "name": name}, {"op": "sum", "operands": [0]}]},
        "feeds": [{"node": 0, "tensor": tensor}],
        "store": [{"node": 0, "tensor_id": "weights"}],
    }


OWN = {key: field for key, field in storing("own").items() if key != "store"}
LINKED = storing("linked")


@dataclass(frozen=True)
class Target:
    """A server that stores the tensor `weights`, and its API key or an empty string."""

    url: str
    key: str

    def store(self) -> str:
        """Store the tensor, and return its etag."""
        tensor = {"dtype": "float64", "shape": [2], "data": [1, 2]}
        return str(self.ask("PUT", json=tensor).json()["etag"])

    def stored(self) -> tuple[str, list[float]]:
        """Return etag and elements of the tensor."""
        answer = self.ask("GET").json()
        return answer["etag"], answer["tensor"]["data"]

    def ask(self, method: str, **options: object) -> httpx.Response:
        """Send a request about the tensor."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        response = httpx.request(method, f"{self.url}/v1/tensors/weights", headers=headers, **options)  # type: ignore[arg-type]
        response.raise_for_status()
        return response


@pytest.fixture(scope="module", params=["without keys", "with a key"])
def target(
    request: pytest.FixtureRequest, start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory
) -> Target:
    if request.param == "without keys":
        return Target(start_server().url, "")
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    command = [sys.executable, "-m", "service", "keys", "add", "--keys-file", str(file), "page"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    key = next(word for word in done.stdout.split() if len(word) > 30)
    return Target(start_server("--keys-file", str(file)).url, key)


def enter_key(playground: Playground, target: Target) -> None:
    """Type the key into its field, if the page asks for one."""
    field = playground.element("key")
    if target.key:
        WebDriverWait(playground.page, PATIENCE).until(
            lambda _: field.is_displayed(), "the page does not ask for a key"
        )
        field.send_keys(target.key)


def run_own(playground: Playground, target: Target) -> None:
    """Run a request of the user's own with the key, so that the page is in full use."""
    playground.open(fragment(OWN, "forward"))
    enter_key(playground, target)
    playground.element("run").click()
    playground.wait_for_status(" ms on cpu")
    playground.until_drawn("own")
    traffic(playground.page)


def assert_unsent(playground: Playground, target: Target, etag: str) -> None:
    """Check that the link's request is shown with its notice, and that neither it nor an edit of it is sent."""
    playground.until_drawn("linked")
    assert (traffic(playground.page).sent, target.stored()[0]) == ([], etag)
    assert playground.element("stores").text.endswith("overwrites existing ones: weights")
    playground.type(json.dumps(storing("edited")))
    playground.until_drawn("edited")  # so the linter, which plans other texts, has seen this one
    playground.element("mode-check").click()
    assert not playground.element("stores").is_displayed(), "check stores nothing"
    playground.element("mode-forward").click()
    assert playground.element("stores").text.endswith(": weights")
    assert (traffic(playground.page).sent, target.stored()[0]) == ([], etag)


def assert_run_stores(playground: Playground, target: Target, etag: str) -> None:
    """Click Run, and check that the tensor is overwritten."""
    playground.element("run").click()
    playground.wait_for_status(" ms on cpu")
    new_etag, data = target.stored()
    assert (new_etag != etag, data) == (True, [7, 7])


@pytest.mark.parametrize("mode", ["forward", "gradients", "check", "differentiate"])
def test_link_from_a_page_sends_no_request_before_run(page: Chrome, target: Target, port: int, mode: str) -> None:
    etag = target.store()
    page.get(f"http://127.0.0.1:{port}/")
    traffic(page)
    page.execute_script("location = arguments[0]", f"{target.url}/#{fragment(LINKED, mode)}")
    playground = Playground(page, target.url)
    playground.until_drawn("linked")
    assert (traffic(page).sent, target.stored()[0]) == ([], etag)
    assert playground.element("stores").is_displayed() == (mode in ("forward", "gradients"))
    playground.element("mode-forward").click()
    enter_key(playground, target)
    assert_unsent(playground, target, etag)
    assert_run_stores(playground, target, etag)


def test_link_in_an_open_tab_sends_no_request_before_run(page: Chrome, target: Target) -> None:
    etag = target.store()
    playground = Playground(page, target.url)
    run_own(playground, target)
    page.get(f"{target.url}/#{fragment(LINKED, 'forward')}")
    assert playground.element("key").get_attribute("value") == target.key, "the page has not been loaded again"
    assert_unsent(playground, target, etag)
    assert_run_stores(playground, target, etag)


def test_opener_cannot_navigate_the_window_that_it_opened(page: Chrome, target: Target, port: int) -> None:
    etag = target.store()
    page.get(f"http://127.0.0.1:{port}/")
    hostile = page.current_window_handle
    page.execute_script(
        "const b = document.createElement('button'); b.id = 'open'; b.textContent = 'open'; "
        "b.onclick = () => { window.opened = open(arguments[0]) }; document.body.prepend(b)", target.url
    )  # fmt: skip
    page.find_element(By.ID, "open").click()
    WebDriverWait(page, PATIENCE).until(lambda driver: len(driver.window_handles) == 2, "no window is open")
    (window,) = set(page.window_handles) - {hostile}
    try:
        page.switch_to.window(window)
        playground = Playground(page, target.url)
        run_own(playground, target)
        address = page.current_url
        page.switch_to.window(hostile)
        link = f"{target.url}/#{fragment(LINKED, 'forward')}"
        assert page.execute_script("opened.location = arguments[0]; return opened.closed", link) is True
        page.switch_to.window(window)
        assert page.current_url == address
        assert "own" in " ".join(playground.drawn())
        page.execute_script("location.hash = arguments[0]", fragment(LINKED, "forward"))
        assert_unsent(playground, target, etag)
    finally:
        page.switch_to.window(window)
        page.close()
        page.switch_to.window(hostile)


def test_going_back_to_a_link_sends_no_request(page: Chrome, target: Target) -> None:
    """History within the page, return from another page, and reload."""
    etag = target.store()
    playground = Playground(page, target.url)
    run_own(playground, target)
    page.get(f"{target.url}/#{fragment(LINKED, 'forward')}")
    playground.until_drawn("linked")
    page.back()
    playground.until_drawn("own")
    page.forward()
    playground.until_drawn("linked")
    page.get("about:blank")
    page.back()
    playground.until_drawn("linked")
    page.refresh()
    playground.until_drawn("linked")
    enter_key(playground, target)
    assert_unsent(playground, target, etag)


def test_undo_to_a_linked_request_sends_no_request(page: Chrome, target: Target) -> None:
    """The example that replaced it runs by itself; undo brings back a text that has not been run."""
    etag = target.store()
    playground = Playground(page, target.url)
    run_own(playground, target)
    page.get(f"{target.url}/#{fragment(LINKED, 'forward')}")
    playground.until_drawn("linked")
    page.get(f"{target.url}/#gallery=himmelblau")
    playground.wait_for_status(" ms on cpu")
    assert not playground.element("stores").is_displayed()
    page.execute_script("arguments[0].focus()", playground.content)
    traffic(page)
    playground.undo()
    playground.until_drawn("linked")
    assert_unsent(playground, target, etag)
    assert_run_stores(playground, target, etag)


def test_name_in_a_link_is_shown_as_text(page: Chrome, target: Target) -> None:
    """Escapes hide the field of the request that contains the name."""
    name = "<img src=x><b>weights</b>"
    request = json.dumps({**LINKED, "store": [{"node": 0, "tensor_id": name}]})
    playground = Playground(page, target.url)
    playground.open(fragment(request.replace('"store"', r'"st\u006fre"'), "forward"))
    notice = playground.element("stores")
    assert notice.text.endswith(f": {name}")
    assert not notice.find_elements(By.CSS_SELECTOR, "*")
