"""Bad requests over all three protocols at a started server: no 500, each in its form, which its client can print."""

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


def printed(facade: str, answer: httpx.Response) -> str:
    """What the protocol's own client makes of a refusal: the sentence of the exception that it raises."""
    if facade == "umbridge":
        told: dict[str, Any] = answer.json()["error"]
        return f"Model returned error of type {told['type']}: {told['message']}"  # as its HTTPModel has it, inline
    if facade == "openinference":
        return _raised_by_triton(answer)
    return _raised_by_tesseract(answer)


def _raised_by_triton(answer: httpx.Response) -> str:
    from tritonclient.http._utils import _raise_if_error

    class Seen:
        status_code = answer.status_code

        @staticmethod
        def read() -> bytes:
            return answer.content

    with pytest.raises(Exception) as raised:  # noqa: PT011 - whichever it is, it is to have a sentence
        _raise_if_error(Seen())
    return str(raised.value)


def _raised_by_tesseract(answer: httpx.Response) -> str:
    import requests
    from tesseract_core.sdk.tesseract import HTTPClient

    seen = requests.Response()
    seen.status_code, seen._content = answer.status_code, answer.content
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whichever it is, it is to have a sentence
        HTTPClient("http://localhost")._decode_response(seen, "apply")
    return str(raised.value)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name[:80])
def test_malformed(server: httpx.Client, case: BadRequest) -> None:
    answer = server.request(case.method, case.path, content=case.body, headers=case.headers)
    assert 400 <= answer.status_code < 500, answer.text[:300]
    told = answer.json()
    assert is_in_its_form(case.facade, told), answer.text[:300]
    sentence = told["detail"][0]["msg"] if case.facade == "tesseract" else told["error"]
    sentence = sentence["message"] if isinstance(sentence, dict) else sentence
    assert sentence in printed(case.facade, answer)


def test_malformed_are_many_of_each() -> None:
    counts = Counter(case.facade for case in ALL)
    assert counts.keys() == {"umbridge", "openinference", "tesseract"}
    assert counts.total() >= 150
    assert min(counts.values()) >= 40
