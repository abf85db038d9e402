"""Write a Go module for `GOPROXY=file://…`: `python -m clients.packages.go_module SOURCES OUT VERSION`.

The layout is that of https://go.dev/ref/mod#goproxy-protocol, the archive's that of https://go.dev/ref/mod#zip-files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile


def main(source: str, out: str, version: str) -> None:
    """Write the three files of a version."""
    declared = (Path(source) / "go.mod").read_text(encoding="utf-8")
    module = declared.split()[1]
    folder = Path(out) / module / "@v"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"v{version}.info").write_text(json.dumps({"Version": f"v{version}"}), encoding="utf-8")
    (folder / f"v{version}.mod").write_text(declared, encoding="utf-8")
    with ZipFile(folder / f"v{version}.zip", "w", ZIP_DEFLATED) as archive:
        for path in sorted(p for p in Path(source).rglob("*") if p.is_file()):
            archive.write(path, f"{module}@v{version}/{path.relative_to(source)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
