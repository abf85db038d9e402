"""What an image is here: a folder with its files, and what the Dockerfile says of running them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Image:
    """A root file system and its configuration."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "0:0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    ports: list[str] = field(default_factory=list)

    def copy(self, root: Path) -> Image:
        """The image a stage starts from when it is FROM this one."""
        run("cp", "--archive", "--reflink=auto", str(self.root), str(root))
        return replace(
            self,
            root=root,
            environment=dict(self.environment),
            volumes=list(self.volumes),
            labels=dict(self.labels),
            ports=list(self.ports),
        )

    @property
    def size(self) -> int:
        """The bytes of its files, a file of several names once."""
        found = [path.lstat() for path in self.root.rglob("*") if path.is_symlink() or path.is_file()]
        return sum({(each.st_dev, each.st_ino): each.st_size for each in found}.values())

    def path(self, inside: str) -> Path:
        """Where a path of the image lies on this machine; a relative one is relative to its folder."""
        return self.root / (Path(self.folder) / inside).relative_to("/")


def require(programs: Mapping[str, str]) -> None:
    """Raise SystemExit, with the command that installs them, where programs are missing: name → Debian's package."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        packages = " ".join(dict.fromkeys(programs[name] for name in missing))
        install = f"on Debian: apt-get install {packages}"
        raise SystemExit(f"container-check needs {' and '.join(missing)}, which this machine lacks; {install}")


def program(name: str) -> str:
    """The path of a program of this machine. Raises SystemExit with a sentence where it is missing."""
    found = shutil.which(name)
    if found is None:
        raise SystemExit(f"container-check needs the program {name}, which is not installed here")
    return found


def run(name: str, *arguments: str) -> None:
    """Run a program of this machine. Raises CalledProcessError."""
    subprocess.run([program(name), *arguments], check=True)


def bootstrap(release: str, root: Path) -> Image:
    """A minimal Debian from its package archive: what the image debian:<release>-slim is made from."""
    if not (root / "etc/debian_version").exists():
        shutil.rmtree(root, ignore_errors=True)
        with (root.parent / "debootstrap.log").open("w", encoding="utf-8") as log:
            command = [program("debootstrap"), "--variant=minbase", release, str(root)]
            subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT)
    return Image(root)
