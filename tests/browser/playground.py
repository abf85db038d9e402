"""Page object of the playground: open it with a request, read and write its editor, inspect its graph."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import pytest
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.seen import PATIENCE
from tests.conftest import ROOT

Json = dict[str, Any]
AXE = ROOT / "build" / "playground" / "node_modules" / "axe-core" / "axe.min.js"


def fragment(request: Json | str, mode: str = "gradients") -> str:
    """The fragment of a link: the request, compressed (RFC 1951), in URL-safe base64."""
    text = request if isinstance(request, str) else json.dumps(request)
    packed = zlib.compress(text.encode(), wbits=-15)
    return f"{mode}={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


class Playground:
    """The page of a server, in a browser."""

    def __init__(self, page: Chrome, url: str) -> None:
        self.page = page
        self.url = url

    def open(self, shared: str = "") -> None:
        """Load the page anew with a fragment, and wait for its status."""
        self.page.get("about:blank")
        self.page.get(f"{self.url}/#{shared}" if shared else f"{self.url}/")
        self.settled()

    def open_with(self, request: Json | str, mode: str = "gradients") -> str:
        """Open a link to a request, run it, and return the status."""
        self.open(fragment(request, mode))
        self.element("run").click()
        return self.settled()

    def element(self, name: str) -> WebElement:
        """An element by its id."""
        return self.page.find_element(By.ID, name)

    def settled(self) -> str:
        """The status after a run has ended."""

        def ended(_: Chrome) -> str | None:
            return self.status if self.status not in ("", "Running …") else None

        return WebDriverWait(self.page, PATIENCE).until(ended, "nothing came of the run")

    def wait_for_status(self, words: str) -> str:
        """Wait until the status contains these words, and return it."""
        WebDriverWait(self.page, PATIENCE).until(lambda _: words in self.status, f"the status never said “{words}”")
        return self.status

    @property
    def status(self) -> str:
        """The text of the status line."""
        return self.element("status").text

    @property
    def content(self) -> WebElement:
        """The content element of the editor."""
        return self.element("editor").shadow_root.find_element(By.CSS_SELECTOR, ".cm-content")

    @property
    def text(self) -> str:
        """The text in the editor. It must be short, since only visible lines are in the DOM."""
        lines = "return [...arguments[0].querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')"
        return str(self.page.execute_script(lines, self.content))

    def in_editor(self, selector: str) -> list[WebElement]:
        """Elements of the editor, once there is at least one match."""

        def matches(_: Chrome) -> list[WebElement]:
            return self.element("editor").shadow_root.find_elements(By.CSS_SELECTOR, selector)

        return WebDriverWait(self.page, PATIENCE).until(matches, f"{selector} is not in the editor")

    def type(self, *keys: str) -> None:
        """Replace the text of the editor by typing keys."""
        self.page.execute_script("arguments[0].focus()", self.content)
        everything = ActionChains(self.page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL)
        everything.send_keys(Keys.BACKSPACE, *keys).perform()

    def run(self) -> None:
        """Press Ctrl+Enter where the focus is."""
        ActionChains(self.page).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()

    def undo(self) -> None:
        """Press Ctrl+Z where the focus is."""
        ActionChains(self.page).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        ActionChains(self.page).send_keys(*keys).perform()

    def node(self, number: int) -> WebElement:
        """A node of the drawing, once it is drawn."""
        selector = f'#graph-drawing [data-node="{number}"]'
        wait = WebDriverWait(self.page, PATIENCE, ignored_exceptions=[NoSuchElementException])
        return wait.until(lambda page: page.find_element(By.CSS_SELECTOR, selector), f"node {number} is not drawn")

    def drawn(self) -> list[str]:
        """The text of each node, its lines joined."""
        return [" | ".join(each.text.split("\n")) for each in self.all("#graph-drawing [data-node]")]

    def until_drawn(self, words: str) -> None:
        """Wait until a node contains these words."""
        wait = WebDriverWait(self.page, PATIENCE, ignored_exceptions=[StaleElementReferenceException])
        wait.until(lambda _: any(words in text for text in self.drawn()), f"no node says {words}")

    def all(self, selector: str) -> list[WebElement]:
        """All elements that match a selector."""
        return self.page.find_elements(By.CSS_SELECTOR, selector)

    def rows(self) -> list[list[str]]:
        """The cells of the tables."""
        return self.page.execute_script(
            "return [...document.querySelectorAll('#tables tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        )

    def cards(self) -> list[str]:
        """The text of each result, its lines joined; charts are in brackets, with their description."""
        script = (
            "return [...document.querySelectorAll('.card')].map(card => [card.querySelector('h3').textContent, "
            "...[...card.querySelectorAll('.chart')].map(chart => `[${chart.getAttribute('aria-label')}]`), "
            "...[...card.querySelectorAll('p')].map(p => p.textContent)].join(' | '))"
        )
        return list(self.page.execute_script(script))

    def axe(self) -> list[Any]:
        """The violations that axe-core finds, each with its elements; skip the test if axe-core is not installed."""
        if not AXE.exists():
            pytest.skip("needs axe-core: make browser-test")
        self.page.execute_script(AXE.read_text())
        run = (
            "const done = arguments[0];"
            "axe.run().then(r => done(r.violations.map(v => [v.id, v.nodes.map(n => n.html)])))"
        )
        return list(self.page.execute_async_script(run))

    def overflow(self) -> int:
        """Number of pixels by which the page is wider than the window."""
        wide = "const e = document.documentElement; return e.scrollWidth - e.clientWidth"
        return int(self.page.execute_script(wide))

    def program(self, language: str) -> str:
        """The request as a program in a language."""
        self.element("language").send_keys(language)
        self.element("copy").click()
        self.wait_for_status(f"The {language} program is")
        return self.element("handed").get_attribute("value") or ""

    def media(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Set the size of the window and the preferred color scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
