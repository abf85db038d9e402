"""The OpenAPI documents as they are served: one was made beforehand, since it depends on no setting."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files
from typing import Final, NamedTuple

import orjson

from service.calls.description import Json
from service.errors import linked
from service.pages.openapi30 import version30
from service.pages.sdk import sdk_version

#: the file of the wheel that `make docs` writes
SHIPPED: Final = "openapi.json"
#: the full document and the one for generators of clients, each in OpenAPI 3.1 and in 3.0
DOCUMENT_NAMES: Final = (SHIPPED, "openapi-3.0.json", "openapi-sdk.json", "openapi-sdk-3.0.json")
_ETAG_BYTES: Final = 8


class Representation(NamedTuple):
    """A document as it travels, and the etag that no other one has."""

    content: bytes
    etag: str


def shipped_document() -> Json:
    """The document of this version, in OpenAPI 3.1."""
    found: Json = orjson.loads((files(__package__) / SHIPPED).read_bytes())
    return found


def documents(described: Json) -> Mapping[str, bytes]:
    """Each document by its name, as JSON: all say what this one in OpenAPI 3.1 says."""
    plain = sdk_version(described)
    each = (described, version30(described), plain, version30(plain))
    return {name: orjson.dumps(document) for name, document in zip(DOCUMENT_NAMES, each, strict=True)}


@lru_cache(maxsize=4 * len(DOCUMENT_NAMES))
def represented(document: bytes, prefix: str, *, zipped: bool) -> Representation:
    """A document in JSON as it is served under a prefix, as /grad, "" for none; by gzip or as it is."""
    content = _under(document, prefix)
    if zipped:
        content = gzip.compress(content, mtime=0)
    return Representation(content, blake2b(content, digest_size=_ETAG_BYTES).hexdigest())


def _under(document: bytes, prefix: str) -> bytes:
    if not prefix:
        return document
    described = orjson.loads(document)
    described["servers"] = [{**server, "url": prefix} for server in described["servers"]]
    described["info"]["description"] = described["info"]["description"].replace("](/", f"]({prefix}/")
    return linked(orjson.dumps(described), prefix)
