"""Bad requests over all three protocols: no 500, and errors in the protocol's form, which its client can print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.service.facades.bad_requests import BadRequest, bad_requests
from tests.service.facades.test_bad_requests import is_in_its_form

pytest.importorskip("umbridge", reason="make test-facades installs the clients")
ALL = bad_requests()


@pytest.fixture(scope="module")
def server(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


def client_message(facade: str, answer: httpx.Response) -> str:
    """The message of the exception that the protocol's own client raises for a refusal."""
    if facade == "umbridge":
        error: dict[str, Any] = answer.json()["error"]
        return f"Model returned error of type {error['type']}: {error['message']}"  # the format in its HTTPModel
    if facade == "openinference":
        return _raised_by_triton(answer)
    return _raised_by_tesseract(answer)


def _raised_by_triton(answer: httpx.Response) -> str:
    from tritonclient.http._utils import _raise_if_error

    class FakeResponse:
        status_code = answer.status_code

        @staticmethod
        def read() -> bytes:
            return answer.content

    with pytest.raises(Exception) as raised:  # noqa: PT011 - only the message is checked
        _raise_if_error(FakeResponse())
    return str(raised.value)


def _raised_by_tesseract(answer: httpx.Response) -> str:
    import requests
    from tesseract_core.sdk.tesseract import HTTPClient

    response = requests.Response()
    response.status_code, response._content = answer.status_code, answer.content
    with pytest.raises(Exception) as raised:  # noqa: PT011 - only the message is checked
        HTTPClient("http://localhost")._decode_response(response, "apply")
    return str(raised.value)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name[:80])
def test_malformed_request_is_refused_in_protocol_form(server: httpx.Client, case: BadRequest) -> None:
    answer = server.request(case.method, case.path, content=case.body, headers=case.headers)
    assert 400 <= answer.status_code < 500, answer.text[:300]
    body = answer.json()
    assert is_in_its_form(case.facade, body), answer.text[:300]
    message = body["detail"][0]["msg"] if case.facade == "tesseract" else body["error"]
    message = message["message"] if isinstance(message, dict) else message
    assert message in client_message(case.facade, answer)


def test_each_facade_has_enough_malformed_cases() -> None:
    counts = Counter(case.facade for case in ALL)
    assert counts.keys() == {"umbridge", "openinference", "tesseract"}
    assert counts.total() >= 150
    assert min(counts.values()) >= 40
