"""Draw all graphs with Node: `python -m scripts.drawings FOLDER`, where FOLDER has the playground's packages."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from scripts.drawings.definitions import definitions
from scripts.drawings.drawn import DOCS, ROOT, Drawn
from scripts.drawings.examples import examples
from scripts.drawings.gallery import gallery_drawings
from scripts.drawings.passes import passes

#: folders that contain only pictures
FOLDERS = ("drawings/ops", "drawings/examples", "drawings/passes", "gallery")


def drawings() -> Iterator[Drawn]:
    """Yield all graphs to draw."""
    for each in (definitions(), examples(), passes(), gallery_drawings()):
        yield from each.values()


def main() -> None:
    """Write the pictures, and delete obsolete ones."""
    parser = argparse.ArgumentParser(prog="scripts.drawings", description=__doc__)
    parser.add_argument("packages", type=Path, help="the folder with node_modules")
    drawn = list(drawings())
    for path, picture in pictures(drawn, parser.parse_args().packages).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(picture, encoding="utf-8")
    for path in superfluous(drawn):
        path.unlink()
    print(f"drew {len(drawn)} graphs")


def superfluous(drawn: list[Drawn]) -> list[Path]:
    """Return the files in the folders of pictures that no graph is drawn to."""
    expected = {each.path for each in drawn}
    return sorted(path for folder in FOLDERS for path in (DOCS / folder).rglob("*.*") if path not in expected)


def pictures(drawn: list[Drawn], packages: Path) -> dict[Path, str]:
    """Draw graphs with Node and these packages, and return the SVG text of each file."""
    messages = json.dumps([each.message for each in drawn])
    command = ("node", str(ROOT / "playground" / "draw.mjs"), str(packages))
    done = subprocess.run(command, input=messages, stdout=subprocess.PIPE, text=True, check=True)
    return {each.path: picture for each, picture in zip(drawn, json.loads(done.stdout), strict=True)}


if __name__ == "__main__":
    main()
