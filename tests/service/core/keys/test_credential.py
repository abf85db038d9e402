"""Credentials in the headers of a request."""

from __future__ import annotations

import re
from hashlib import sha256

import pytest

from service.core.keys.caller import credential_of, digest_of, new_key

KEY = new_key()


def test_new_keys_are_long_and_unique() -> None:
    keys = {new_key() for _ in range(1000)}
    assert len(keys) == 1000
    assert all(re.fullmatch(r"gs_[A-Za-z0-9_-]{43}", key) for key in keys)


def test_credential_is_the_hash_of_the_key() -> None:
    sent = [(b"host", b"test"), (b"authorization", b"bEaReR  " + KEY.encode())]
    assert credential_of(sent).digest == digest_of(KEY) == sha256(KEY.encode()).digest()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "the request has no key; send one as Authorization: Bearer KEY"),
        ([b""], "the header Authorization must have the form Authorization: Bearer KEY"),
        ([b"Bearer"], "the header Authorization must have the form Authorization: Bearer KEY"),
        ([b"Bearer \xff" + KEY.encode()], "the header Authorization must have the form Authorization: Bearer KEY"),
        ([b"Bearer " + KEY.encode() + b"\n"], "the header Authorization must have the form Authorization: Bearer KEY"),
        ([b"Bearer " + KEY.encode()] * 2, "the request has the header Authorization 2 times; send it once"),
        ([b"Bearer " + KEY.encode()] * 3, "the request has the header Authorization 3 times; send it once"),
    ],
)
def test_refusal_does_not_quote_the_credential(values: list[bytes], said: str) -> None:
    credential = credential_of([(b"authorization", value) for value in values])
    assert credential == (None, said)
