"""The OpenAPI documents as they are served: one was made beforehand, since it depends on no setting."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Final

import orjson

from service.calls.definition import Json
from service.errors import linked

#: the file of the wheel that `make docs` writes
SHIPPED: Final = "openapi.json"


def shipped_document() -> Json:
    """The document of this version, in OpenAPI 3.1."""
    found: Json = orjson.loads((files(__package__) / SHIPPED).read_bytes())
    return found


@lru_cache(maxsize=8)
def document_under(document: bytes, prefix: str) -> bytes:
    """A document in JSON as it is served under a prefix, as /grad; "" for none."""
    if not prefix:
        return document
    described = orjson.loads(document)
    described["servers"] = [{**server, "url": prefix} for server in described["servers"]]
    described["info"]["description"] = described["info"]["description"].replace("](/", f"]({prefix}/")
    return linked(orjson.dumps(described), prefix)
