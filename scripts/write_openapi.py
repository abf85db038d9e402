"""Write the OpenAPI documents into a folder, as a server would serve them."""

from __future__ import annotations

import argparse
from pathlib import Path

from service.app import create_routes, open_pool
from service.settings import Settings


def main(arguments: list[str] | None = None) -> None:
    """Write `openapi.json` and `openapi-3.0.json` into the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="made where it is missing")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in documents().items():
        (folder / name).write_bytes(document)


def documents() -> dict[str, bytes]:
    """Each document by the name that it is served under."""
    settings = Settings(device="cpu")
    state = create_routes(settings, open_pool(settings)).state.service
    return {"openapi.json": state.document, "openapi-3.0.json": state.document30}


if __name__ == "__main__":
    main()
