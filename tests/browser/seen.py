"""Checks of pages in a browser: visible elements, and no requests to other hosts."""

from __future__ import annotations

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import traffic

PATIENCE = 60  # seconds; a busy machine takes long to draw a page, and nothing is measured


def shown(page: Chrome, selector: str, count: int = 1) -> list[WebElement]:
    """The visible elements, once there are at least `count`."""

    def enough(driver: Chrome) -> list[WebElement] | None:
        visible = [element for element in driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]
        return visible if len(visible) >= count else None

    wait = WebDriverWait(page, PATIENCE, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(enough, f"{selector} is not on the page")


def follow(page: Chrome, selector: str) -> None:
    """Scroll the first visible match to the middle of the window and click it."""
    element = shown(page, selector)[0]
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def assert_quiet(page: Chrome, address: str) -> None:
    """Check that all requests went to this address, none failed, and the console has no errors."""
    recorded = traffic(page)
    assert recorded.asked
    assert not [url for url in recorded.asked if not url.startswith((address, "data:"))]
    assert (recorded.failed, recorded.refused) == ([], [])
    assert [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
