"""The playground as a test uses it: opened with a request, read and written in its editor, seen as a graph."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.seen import PATIENCE

Json = dict[str, Any]


def fragment(request: Json | str, mode: str = "gradients") -> str:
    """What a link has behind its `#`: the request, compressed (RFC 1951), in base64 for addresses."""
    text = request if isinstance(request, str) else json.dumps(request)
    packed = zlib.compress(text.encode(), wbits=-15)
    return f"{mode}={base64.urlsafe_b64encode(packed).decode().rstrip('=')}"


class Playground:
    """The page of a server, in a browser."""

    def __init__(self, page: Chrome, url: str) -> None:
        self.page = page
        self.url = url

    def open(self, shared: str = "") -> None:
        """Load the page anew, with a fragment; and wait for what it has to say."""
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
        """What the status says, once a run has ended."""

        def ended(_: Chrome) -> str | None:
            return self.status if self.status not in ("", "running …") else None

        return WebDriverWait(self.page, PATIENCE).until(ended, "nothing came of the run")

    def once(self, words: str) -> str:
        """What the status says, once it has these words."""
        WebDriverWait(self.page, PATIENCE).until(lambda _: words in self.status, f"the status never said “{words}”")
        return self.status

    @property
    def status(self) -> str:
        """What it says."""
        return self.element("status").text

    @property
    def content(self) -> WebElement:
        """What is typed into."""
        return self.element("editor").shadow_root.find_element(By.CSS_SELECTOR, ".cm-content")

    @property
    def text(self) -> str:
        """What is in the editor; it has to be short, since only what is seen is there."""
        lines = "return [...arguments[0].querySelectorAll('.cm-line')].map(line => line.textContent).join('\\n')"
        return str(self.page.execute_script(lines, self.content))

    def in_editor(self, selector: str) -> list[WebElement]:
        """Parts of the editor, once there is one."""

        def found(_: Chrome) -> list[WebElement]:
            return self.element("editor").shadow_root.find_elements(By.CSS_SELECTOR, selector)

        return WebDriverWait(self.page, PATIENCE).until(found, f"{selector} is not in the editor")

    def type(self, *keys: str) -> None:
        """Press keys in the editor, whatever was there before being replaced."""
        self.page.execute_script("arguments[0].focus()", self.content)
        everything = ActionChains(self.page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL)
        everything.send_keys(Keys.BACKSPACE, *keys).perform()

    def run(self) -> None:
        """Press Ctrl and Enter where the focus is."""
        ActionChains(self.page).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()

    def undo(self) -> None:
        """Press Ctrl and Z where the focus is."""
        ActionChains(self.page).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        ActionChains(self.page).send_keys(*keys).perform()

    def node(self, number: int) -> WebElement:
        """A node of the drawing, once it is there."""
        selector = f'#graph-drawing [data-node="{number}"]'
        wait = WebDriverWait(self.page, PATIENCE, ignored_exceptions=[NoSuchElementException])
        return wait.until(lambda page: page.find_element(By.CSS_SELECTOR, selector), f"node {number} is not drawn")

    def drawn(self) -> list[str]:
        """The text of each node, its lines joined."""
        return [" | ".join(each.text.split("\n")) for each in self.all("#graph-drawing [data-node]")]

    def until_drawn(self, words: str) -> None:
        """Wait for a node that says this."""
        wait = WebDriverWait(self.page, PATIENCE, ignored_exceptions=[StaleElementReferenceException])
        wait.until(lambda _: any(words in text for text in self.drawn()), f"no node says {words}")

    def all(self, selector: str) -> list[WebElement]:
        """All elements that there are."""
        return self.page.find_elements(By.CSS_SELECTOR, selector)

    def rows(self) -> list[list[str]]:
        """The cells of the tables."""
        return self.page.execute_script(
            "return [...document.querySelectorAll('#tables tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        )

    def program(self, language: str) -> str:
        """The request as a program."""
        self.element("language").send_keys(language)
        self.element("copy").click()
        self.once(f"the {language} program is")
        return self.element("handed").get_attribute("value") or ""

    def media(self, width: int, height: int, *, dark: bool = False, scale: float = 1) -> None:
        """Have the window another size, and the reader another taste."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
