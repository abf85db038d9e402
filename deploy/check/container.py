"""Runs a command in an image's root, in namespaces of its own, as an engine would."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.check.image import Image, program

_DEVICES = ("null", "zero", "full", "random", "urandom")
_SCRATCH = "size=64m,mode=1777,nosuid,nodev,noexec"


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine, and the place in the image where it is seen."""

    source: Path
    target: str
    read_only: bool = False


def _prepare(image: Image, mounts: Iterable[Mount]) -> list[str]:
    """Shell lines that mount /proc, the harmless devices and `mounts`; the namespace's end unmounts them."""
    root = shlex.quote(str(image.root))
    lines = [f"mount -t proc proc {root}/proc"]
    for device in _DEVICES:
        lines.append(f"test -e {root}/dev/{device} || touch {root}/dev/{device}")
        lines.append(f"mount --bind /dev/{device} {root}/dev/{device}")
    for mount in mounts:
        target = shlex.quote(str(image.path(mount.target)))
        lines.append(f"{'mkdir -p' if mount.source.is_dir() else f'mkdir -p $(dirname {target}) && touch'} {target}")
        lines.append(f"mount --bind {'-o ro ' if mount.read_only else ''}{shlex.quote(str(mount.source))} {target}")
    return lines


def _enter(image: Image, command: list[str], environment: Mapping[str, str], privileges: list[str]) -> str:
    """The shell line that becomes the command: root changed, user changed, nothing inherited but the variables."""
    user, _, group = image.user.partition(":")
    change = ["setpriv", f"--reuid={user}", f"--regid={group or user}", "--clear-groups", *privileges]
    variables = [f"{name}={value}" for name, value in environment.items()]
    words = [program("chroot"), str(image.root), *change, "env", "-i", f"--chdir={image.folder}", *variables, *command]
    return "exec " + shlex.join(words)


def build_step(image: Image, shell: str, mounts: list[Mount], environment: Mapping[str, str]) -> None:
    """What RUN does. Raises CalledProcessError where the command fails."""
    lines = _prepare(image, [Mount(Path("/etc/resolv.conf"), "/etc/resolv.conf", read_only=True), *mounts])
    lines.append(_enter(image, ["/bin/sh", "-c", shell], {**image.environment, **environment}, []))
    unshare = [program("unshare"), "--mount", "--pid", "--fork", "--kill-child"]
    subprocess.run([*unshare, "/bin/sh", "-euc", "\n".join(lines)], check=True, stdin=subprocess.DEVNULL)


def start(
    image: Image, volumes: list[Mount], arguments: list[str], variables: Mapping[str, str]
) -> subprocess.Popen[str]:
    """What `run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --network none` does.

    `variables` are those of `--env`. Standard output and standard error are one pipe.
    """
    root = shlex.quote(str(image.root))
    lines = [f"mount --bind {root} {root}", *_prepare(image, volumes)]
    lines += [f"mount -o remount,bind,ro {root}", f"mount -t tmpfs -o {_SCRATCH} tmpfs {root}/tmp"]  # noqa: S108 - the container's
    lines.append("ip link set lo up")
    command = [*image.entrypoint, *image.command, *arguments]
    lines.append(_enter(image, command, {**image.environment, **variables}, confined()))
    unshare = [program("unshare"), "--mount", "--pid", "--net", "--fork", "--kill-child"]
    return subprocess.Popen(
        [*unshare, "/bin/sh", "-euc", "\n".join(lines)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def confined() -> list[str]:
    """No capabilities, and none to be had by a set-uid program."""
    return ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]


def inside(
    image: Image, process: int, command: list[str], variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What `exec` does: the command in the namespaces of a running process, as the image's user."""
    enter = [program("nsenter"), f"--target={process}", "--mount", "--pid", "--net", "/bin/sh", "-euc"]
    line = _enter(image, command, {**image.environment, **(variables or {})}, confined())
    return subprocess.run([*enter, line], capture_output=True, text=True, check=False)


def child(process: int) -> int:
    """The process that `unshare --fork` started: the first one of the container."""
    return int(Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()[0])
