"""Op catalogue as it is served. `make docs` writes it, so that the front need not load the engine."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import orjson

from engine.ir.spellings import Spellings
from schemas import Catalogue, OpInfo

#: file of the wheel that `make docs` writes
SHIPPED: Final = "catalogue.json"


class OpCatalogue:
    """Rows of all ops, found by any of their names."""

    def __init__(self, content: Catalogue) -> None:
        self.content = content
        self._rows = {row["name"]: row for row in content["ops"]}
        self._spellings = Spellings(
            {row["name"]: [alias["name"] for alias in row["aliases"]] for row in content["ops"]}
        )

    def find(self, spelling: str) -> OpInfo | None:
        """Return the row of an op by its name or an alias, ignoring case."""
        name = self._spellings.find(spelling)
        return None if name is None else self._rows[name]

    def hint(self, spelling: str) -> str | None:
        """Return “did you mean silu?” for a name that `find` does not know, None if no name is similar."""
        return self._spellings.hint(spelling)


def shipped_catalogue() -> OpCatalogue:
    """Read the catalogue of this version."""
    return OpCatalogue(orjson.loads((files(__package__) / "generated" / SHIPPED).read_bytes()))
