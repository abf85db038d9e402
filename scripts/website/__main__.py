"""Build the site in build/site, or in the given folder, and check its links."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from scripts.build_docs import ROOT
from scripts.website.assemble import assemble
from scripts.website.check import faults


def main() -> int:
    """Build the site. Return 1 if Sphinx warns, or a link is broken."""
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
    broken = faults(target)
    print("\n".join(broken) or f"the site is in {target}: open {target / 'index.html'}")
    return int(bool(built.returncode or broken))


if __name__ == "__main__":
    sys.exit(main())
