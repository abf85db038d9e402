"""Executes the stages of a target, instruction by instruction."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from docker.utils.build import exclude_paths  # type: ignore[import-untyped]

from deploy.check.configuration import configure
from deploy.check.container import Mount, build_step
from deploy.check.dockerfile import Instruction, Stage
from deploy.check.image import Image, bootstrap, run

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_CERTIFICATES = "/run/certificates.crt"


class Builder:
    """Builds stages of one build context into folders under `store`."""

    def __init__(self, context: Path, store: Path, secrets: Mapping[str, Path]) -> None:
        self.context = context
        self.store = store
        self.secrets = secrets
        self.images: dict[str, Image] = {}

    def build(self, stage: Stage) -> Image:
        """Execute one stage; the stages that it needs are built already."""
        image = self._base(stage)
        self.images[stage.name] = image
        arguments: dict[str, str] = {}
        for instruction in stage.instructions:
            begin = time.monotonic()
            try:
                self._execute(image, instruction, arguments)
            except subprocess.CalledProcessError as error:
                raise SystemExit(f"FAIL [{stage.name}] {_shown(instruction)}: exit status {error.returncode}") from None
            print(f"[{stage.name}] {_shown(instruction)}  ({time.monotonic() - begin:.1f} s)", flush=True)
        print(f"[{stage.name}] {image.size / 1e6:.0f} MB", flush=True)
        return image

    def _execute(self, image: Image, instruction: Instruction, arguments: dict[str, str]) -> None:
        if instruction.name == "RUN":
            self.run(image, instruction, arguments)
        elif instruction.name == "COPY":
            self.copy(image, instruction)
        else:
            configure(image, instruction, arguments)

    def _base(self, stage: Stage) -> Image:
        root = self.store / "stages" / stage.name
        print(f"[{stage.name}] FROM {stage.base}", flush=True)
        if stage.base in self.images:
            return self.images[stage.base].copy(root)
        root.parent.mkdir(parents=True, exist_ok=True)
        release = stage.base.partition("@")[0].removeprefix("debian:").removesuffix("-slim")
        print(f"    stands for it: debootstrap --variant=minbase {release}", flush=True)
        return bootstrap(release, self.store / f"debian-{release}").copy(root)

    def run(self, image: Image, instruction: Instruction, arguments: dict[str, str]) -> None:
        """RUN: in the image's root, with its mounts, the proxies and the certificates of this machine."""
        flags = [flag for flag in instruction.flags if flag.startswith("mount=")]
        mounts = [mount for flag in flags for mount in self._mounts(flag.removeprefix("mount="))]
        trust = os.environ.get("SSL_CERT_FILE", "")
        environment = {name: os.environ[name] for name in _PROXIES if name in os.environ} | arguments
        if trust:
            mounts.append(Mount(Path(trust).resolve(), _CERTIFICATES, read_only=True))
            environment |= {"SSL_CERT_FILE": _CERTIFICATES, "PIP_CERT": _CERTIFICATES}
        build_step(image, instruction.value, mounts, environment)

    def _mounts(self, flag: str) -> list[Mount]:
        given = dict(part.split("=", 1) for part in flag.split(","))
        if given["type"] == "cache":
            folder = self.store / "cache" / given["target"].strip("/").replace("/", "-")
            folder.mkdir(parents=True, exist_ok=True)
            return [Mount(folder, given["target"])]
        if given["type"] == "secret":
            secret = self.secrets.get(given["id"])
            return [Mount(secret, given["target"], read_only=True)] if secret else []
        raise NotImplementedError(f"RUN --mount=type={given['type']}")

    def copy(self, image: Image, instruction: Instruction) -> None:
        """COPY: from an earlier stage, or from what .dockerignore leaves of the context."""
        *sources, target = instruction.words
        source = instruction.flag("from")
        root, allowed = (self.images[source].root, None) if source else (self.context, self._allowed())
        for name in sources:
            self._place(root, name, image.path(target), into=target.endswith("/"), allowed=allowed)
        if mode := instruction.flag("chmod"):
            image.path(target).chmod(int(mode, 8))

    def _allowed(self) -> set[str]:
        lines = (self.context / ".dockerignore").read_text(encoding="utf-8").splitlines()
        patterns = [line for line in lines if line and not line.startswith("#")]
        return set(exclude_paths(str(self.context), patterns)) - {"Dockerfile", ".dockerignore"}

    @staticmethod
    def _place(root: Path, name: str, target: Path, *, into: bool, allowed: set[str] | None) -> None:
        source = root / name.lstrip("/")
        if allowed is None:
            target.mkdir(parents=True, exist_ok=True)
            run("cp", "--archive", f"{source}/.", str(target))
        elif source.is_dir():
            chosen = [path for path in allowed if (root / path).is_file() and (root / path).is_relative_to(source)]
            for path in sorted(chosen):
                _copy_file(root / path, target / (root / path).relative_to(source))
        elif name in allowed:
            _copy_file(source, target / source.name if into else target)
        else:
            raise FileNotFoundError(f"COPY {name}: .dockerignore keeps it out of the build context")


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _shown(instruction: Instruction) -> str:
    flags = "".join(f"--{flag} " for flag in instruction.flags)
    return f"{instruction.name} {flags}{' '.join(instruction.value.split())}"
