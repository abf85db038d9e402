"""Headless Chromium that can reach only this machine, and a record of its requests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,1600",
)  # fmt: skip
#: names resolve to nothing unless a test maps them
RESOLVER_RULES = ("MAP * ~NOTFOUND", "EXCLUDE 127.0.0.1")


@contextmanager
def browser(profile: Path, *names: str) -> Iterator[Chrome]:
    """Open a new browser with this empty folder as its profile; skip the test if Chromium is not installed.

    `names` are resolver rules for names that lead to this machine.
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("Chromium and chromedriver are not installed; `make browser-test` installs them on Debian")
    opened = Chrome(options(chromium, profile, names), ChromeService(driver))
    try:
        yield opened
    finally:
        opened.quit()


def options(chromium: str, profile: Path, names: Sequence[str] = ()) -> ChromeOptions:
    """Options to start it offline, with a log of its requests."""
    chosen = ChromeOptions()
    chosen.binary_location = chromium
    rules = ", ".join((*names, *RESOLVER_RULES))
    for flag in (*FLAGS, f"--host-resolver-rules={rules}", f"--user-data-dir={profile}"):
        chosen.add_argument(flag)
    chosen.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    return chosen


@dataclass(frozen=True)
class Traffic:
    """The requests of a page and their outcomes."""

    asked: list[str]
    #: methods and addresses of requests other than GET
    sent: list[str]
    failed: list[str]
    refused: list[str]


def traffic(opened: Chrome) -> Traffic:
    """Return all requests since the last call: addresses, failures, and refusals."""
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = {
        event["requestId"]: event["request"]["url"]
        for event in of_kind(events, "requestWillBeSent")
        if not event["documentURL"].startswith("chrome:")  # the browser's own first page
    }
    sent = [
        f"{event['request']['method']} {event['request']['url']}"
        for event in of_kind(events, "requestWillBeSent")
        if event["request"]["method"] != "GET"
    ]
    ended = {event["requestId"]: event["errorText"] for event in of_kind(events, "loadingFailed")}
    statuses = {event["requestId"]: event["response"]["status"] for event in of_kind(events, "responseReceived")}
    return Traffic(
        asked=list(asked.values()),
        sent=sent,
        failed=[f"{ended[request]} {url}" for request, url in asked.items() if request in ended],
        refused=[f"{statuses[request]} {url}" for request, url in asked.items() if statuses.get(request, 200) >= 400],
    )


def of_kind(events: list[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    """The parameters of the network events of this kind."""
    return (event["params"] for event in events if event["method"] == f"Network.{kind}")
