"""What tests see of pages in a browser: what is shown, and that nothing was asked of another host."""

from __future__ import annotations

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.browser.chromium import traffic

PATIENCE = 60  # seconds; a busy machine takes long to draw a page, and nothing is measured


def shown(page: Chrome, selector: str, count: int = 1) -> list[WebElement]:
    """The elements, once there are so many that can be seen."""

    def enough(driver: Chrome) -> list[WebElement] | None:
        found = [element for element in driver.find_elements(By.CSS_SELECTOR, selector) if element.is_displayed()]
        return found if len(found) >= count else None

    wait = WebDriverWait(page, PATIENCE, ignored_exceptions=[StaleElementReferenceException])
    return wait.until(enough, f"{selector} is not on the page")


def follow(page: Chrome, selector: str) -> None:
    """Click on what can be seen, in the middle of the window, wherever it is in a long list."""
    found = shown(page, selector)[0]
    page.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", found)
    found.click()


def assert_quiet(page: Chrome, address: str) -> None:
    """Everything was asked of this address, nothing failed, and the console has no complaint."""
    seen = traffic(page)
    assert seen.asked
    assert not [url for url in seen.asked if not url.startswith((address, "data:"))]
    assert (seen.failed, seen.refused) == ([], [])
    assert [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
