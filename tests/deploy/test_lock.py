"""The locks pin every package of the images: versions within the bounds of the project, files by hash."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.deploy.images import ROOT, project

CPU, CUDA, CUDNN = "cpu", ("cuda12", "cuda13"), ("cudnn12", "cudnn13")
PINNED = re.compile(
    r"^([a-z0-9-]+)==([0-9][0-9.]*(?:b[0-9]+)?)(?: ; \S.*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)
BOUND = re.compile(r"(>=|<)([0-9.]+)")
ADDRESS = re.compile(r"://|index-url|find-links|trusted-host| @ |[a-z0-9]\.(?:org|com|net|io|dev)\b")


def text(name: str) -> str:
    """The text of a lock."""
    return (ROOT / f"deploy/lock/{name}.txt").read_text(encoding="utf-8")


def versions(lock: str) -> dict[str, str]:
    """The pins of a lock: name → version."""
    return {name: version for name, version, _ in PINNED.findall(lock)}


def number(version: str) -> tuple[int, ...]:
    """A version as a comparable tuple, without trailing zeros."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def unmet(requirements: list[str], pinned: dict[str, str]) -> list[str]:
    """The requirements that the pinned versions do not meet."""
    return [requirement for requirement in requirements if not met(requirement, pinned)]


def met(requirement: str, pinned: dict[str, str]) -> bool:
    """Whether a requirement, a name with bounds, is pinned within them; the images' platform meets every marker."""
    requirement = requirement.partition(";")[0].strip()
    name = re.match(r"[A-Za-z0-9-]+", requirement)
    bounds = BOUND.findall(requirement)
    assert name
    assert requirement == name[0] + ",".join("".join(bound) for bound in bounds), (
        f"{requirement} is not understood here"
    )
    version = pinned.get(name[0].lower())
    return version is not None and all(
        number(version) >= number(end) if sign == ">=" else number(version) < number(end) for sign, end in bounds
    )


def required(extra: str) -> list[str]:
    """The requirements of an extra, and those of the project's extras that it names."""
    requirements = project()["optional-dependencies"][extra]
    parts = [re.fullmatch(r"gradserve\[([a-z0-9]+)\]", requirement) for requirement in requirements]
    own = [requirement for requirement, part in zip(requirements, parts, strict=True) if not part]
    return own + [requirement for part in parts if part for requirement in required(part[1])]


@pytest.mark.parametrize("lock", [CPU, *CUDA, *CUDNN])
def test_every_dependency_is_pinned_within_its_bounds(lock: str) -> None:
    extras = ["otel", "cluster", *([] if lock == CPU else [lock])]
    needed = project()["dependencies"] + [each for extra in extras for each in required(extra)]
    assert not unmet(needed, versions(text(lock)))


def test_build_requirements_are_pinned() -> None:
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert not unmet(requirements, versions(text("build")))


@pytest.mark.parametrize("lock", CUDA)
def test_gpu_lock_extends_the_cpu_lock(lock: str) -> None:
    """The GPU image starts from the CPU layer."""
    assert versions(text(CPU)).items() <= versions(text(lock)).items()
    assert [name for name in versions(text(lock)) if name.startswith("nvidia-")], "the libraries that CuPy loads"


@pytest.mark.parametrize(("lock", "below"), [*zip(CUDNN, CUDA, strict=True)])
def test_cudnn_lock_adds_only_cudnn(lock: str, below: str) -> None:
    """The cuDNN image adds to the layers of the CUDA image and replaces nothing in them."""
    added = versions(text(lock)).keys() - versions(text(below)).keys()
    assert versions(text(below)).items() <= versions(text(lock)).items()
    assert added == {f"nvidia-cudnn-cu{lock[-2:]}", "nvidia-cudnn-frontend"}


@pytest.mark.parametrize("lock", [CPU, *CUDA, *CUDNN, "build"])
def test_lock_has_only_names_versions_and_hashes(lock: str) -> None:
    left = [line for line in PINNED.sub("", text(lock)).splitlines() if not re.fullmatch(r"\s*#.*", line)]
    assert not left
    assert not ADDRESS.findall(text(lock))


def test_bounds_check_finds_unmet_requirements() -> None:
    pinned = {"numpy": "2.4.6", "h11": "1.0"}
    assert unmet(["numpy>=2.1,<3", "numpy>=2.4.7", "numpy<2.4", "h11>=1,<1.0", "scipy>=1"], pinned) == [
        "numpy>=2.4.7", "numpy<2.4", "h11>=1,<1.0", "scipy>=1",
    ]  # fmt: skip
    assert not unmet(["numpy>=2.1; sys_platform == 'linux'"], pinned)
    assert ADDRESS.search("# from https://index.example/simple")
