"""Execute the steps of a Dockerfile target in a Debian root made on the spot, and ask what it built for a gradient.

For machines without a container engine. Needs Linux, root, debootstrap, util-linux and iproute2; the network for the
package archives. Stops at the first thing that is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from deploy.check import ask
from deploy.check.build import Builder
from deploy.check.container import Mount, child, inside, start
from deploy.check.dockerfile import needed, read
from deploy.check.image import Image, program, require

CONTEXT = Path(__file__).parents[2]
#: what it runs on this machine, and the packages of Debian that these come from
PROGRAMS = {
    "debootstrap": "debootstrap",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
    "chroot": "coreutils",
}
GRADIENT = [{"node": 1, "tensor": {"dtype": "float64", "shape": [2], "data": [-2.0, -2.0]}}]


def report(what: str, found: object, *, good: bool) -> None:
    """Print one finding. Raises SystemExit where it is bad."""
    print(f"{'ok  ' if good else 'FAIL'} {what}: {found}", flush=True)
    if not good:
        raise SystemExit(1)


def lint() -> None:
    """hadolint on the Dockerfile."""
    beside = Path(sys.executable).with_name("hadolint")
    linter = str(beside) if beside.exists() else program("hadolint")
    done = subprocess.run([linter, str(CONTEXT / "Dockerfile")], capture_output=True, text=True, check=False)
    report("hadolint", done.stdout.strip() or "no findings", good=done.returncode == 0)


def status(process: int, *names: str) -> dict[str, str]:
    """Lines of /proc/<process>/status, by name."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return {name: line.partition(":")[2].strip() for line in lines if (name := line.partition(":")[0]) in names}


def examine(image: Image, process: int, key: Mapping[str, str]) -> None:
    """Look at the running container: its user, its rights, its root, its health, its answers without and with a key."""
    uid = status(process, "Uid")["Uid"].split()
    report("user ids of the server", " ".join(uid), good=set(uid) == {image.user.partition(":")[0]} and "0" not in uid)
    rights = status(process, "CapEff", "CapBnd", "NoNewPrivs")
    report("rights of the server", rights, good=int(rights["CapBnd"], 16) == 0 and rights["NoNewPrivs"] == "1")
    for path in ("/probe", "/opt/gradserve/probe", "/var/probe"):
        refused = inside(image, process, ["touch", path]).stderr.strip()
        report("writing to the root", refused, good="Read-only file system" in refused)
    for path in ("/tmp", *image.volumes):  # noqa: S108 - the container's
        done = inside(image, process, ["touch", f"{path}/probe"])
        report(f"writing to {path}", done.stderr.strip() or "allowed", good=done.returncode == 0)
    healthy = inside(image, process, image.health)
    report("health check", f"exit status {healthy.returncode}", good=healthy.returncode == 0)
    question = Path(ask.__file__).read_text(encoding="utf-8")
    denied = inside(image, process, ["python", "-c", question])
    report("without the key", denied.stdout.strip() or denied.stderr.strip(), good='"unauthenticated"' in denied.stdout)
    answer = inside(image, process, ["python", "-c", question], key)
    gradients = json.loads(answer.stdout or "{}").get("gradients")
    report("a gradient", answer.stdout.strip() or answer.stderr.strip(), good=gradients == GRADIENT)


def first_words(server: subprocess.Popen[str]) -> str:
    """What a server prints until it listens, or all that it prints when it does not come to that."""
    said = []
    for line in server.stdout or ():
        said.append(line.strip())
        if "listening on" in line:
            break
    return " ".join(said)


def serve(image: Image, store: Path, arguments: list[str]) -> None:
    """Start the image's server, which it does not do without a key; examine it, stop it."""
    mounts = [Mount(_volume(image, store, path), path) for path in image.volumes]
    open_to_all = start(image, mounts, arguments, {})
    said = first_words(open_to_all)
    report("the server without a key", said, good=open_to_all.wait(60) == 2 and "no API keys" in said)
    key = {"GRADSERVE_API_KEY": secrets.token_urlsafe(32)}
    server = start(image, mounts, arguments, key)
    try:
        said = first_words(server)
        report("the server", said, good="listening on" in said)
        process = child(server.pid)
        examine(image, process, key)
        os.kill(process, 15)
        report("exit status after SIGTERM", server.wait(60), good=server.returncode == 0)
    finally:
        server.kill()
        server.wait()


def _volume(image: Image, store: Path, path: str) -> Path:
    # As an engine does for a fresh volume: the image's folder, owner included.
    place = store / "volumes" / path.strip("/").replace("/", "-")
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([program("cp"), "--archive", str(image.path(path)), str(place)], check=True)
    return place


def options() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser("deploy.check", description=__doc__)
    parser.add_argument("--target", default="cpu", help="the stage to build")
    parser.add_argument("--store", type=Path, help="cache folder for the downloads of Debian and pip")
    parser.add_argument("--secret", type=Path, help="the secret `pip`: a pip.conf for the build only")
    parser.add_argument("arguments", nargs="*", help="arguments that `docker run` would append, after --")
    return parser.parse_args()


def check(given: argparse.Namespace, store: Path) -> None:
    """Lint, build, serve."""
    lint()
    shutil.rmtree(store / "stages", ignore_errors=True)
    shutil.rmtree(store / "volumes", ignore_errors=True)
    secret_files = {"pip": given.secret.resolve()} if given.secret else {}
    builder = Builder(CONTEXT, store.resolve(), secret_files)
    for stage in needed(read(CONTEXT / "Dockerfile"), given.target):
        builder.build(stage)
    serve(builder.images[given.target], store.resolve(), given.arguments)
    shutil.rmtree(store / "stages")
    print(f"target {given.target}: built, served, stopped")


def main() -> None:
    """Check a target, in a folder that is kept or in one that is not."""
    given = options()
    if os.geteuid() != 0:
        raise SystemExit("container-check must run as root: it changes roots, mounts and users")
    require(PROGRAMS)
    if given.store:
        given.store.mkdir(parents=True, exist_ok=True)
        check(given, given.store)
    else:
        with tempfile.TemporaryDirectory() as folder:
            check(given, Path(folder))


if __name__ == "__main__":
    main()
