"""Build the site in build/site, or in the folder that is given, and look at its links."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from scripts.build_docs import ROOT
from scripts.website.assemble import assemble
from scripts.website.check import faults


def main() -> int:
    """Returns 1 where Sphinx has a warning, or a link leads nowhere."""
    parser = argparse.ArgumentParser(prog="scripts.website", description=__doc__)
    parser.add_argument("target", nargs="?", type=Path, default=ROOT / "build" / "site")
    target = parser.parse_args().target
    sources = target.with_name(f"{target.name}-sources")
    assemble(sources)
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "--fresh-env", "--write-all",
         "--conf-dir", Path(__file__).parent, "--doctree-dir", sources / ".doctrees", sources, target],
        check=False,
    )  # fmt: skip
    found = faults(target)
    print("\n".join(found) or f"the site is in {target}: open {target / 'index.html'}")
    return int(bool(built.returncode or found))


if __name__ == "__main__":
    sys.exit(main())
