"""The Dockerfile: linted, its stages, its users, the order of its layers. Nothing is built."""

from __future__ import annotations

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.deploy.images import (
    ROOT,
    SKIP_REASON,
    TARGETS,
    environment,
    health,
    instructions,
    labels,
    last,
    linter,
    project,
    reader,
    stages,
    volumes,
)

CODE = ("engine", "schemas", "service")
REGISTRY = re.compile(r"https?://|index-url|trusted-host|find-links|\w\.\w+/\w+[:@]")


def context() -> set[str]:
    """The files of the project that .dockerignore lets through."""
    build = pytest.importorskip("docker.utils.build", reason=SKIP_REASON)
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    return {path for path in build.exclude_paths(str(ROOT), patterns) if (ROOT / path).is_file()}


def test_linter_passes() -> None:
    done = subprocess.run([linter(), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_linter_detects_faults(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM debian\nRUN cd /x && sudo true\n", encoding="utf-8")
    done = subprocess.run([linter(), "Dockerfile"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_default_target_is_cpu() -> None:
    assert list(stages())[-1] == "cpu"


def test_cpu_target_has_no_gpu_stages() -> None:
    names = [stage.name for stage in reader().needed(stages(), "cpu")]
    assert {"cpu-dependencies", "code"} < set(names)
    assert not [name for name in names if "cuda" in name or "cudnn" in name]


def test_cuda_target_has_no_cudnn_stages() -> None:
    assert not [stage.name for stage in reader().needed(stages(), "cuda") if "cudnn" in stage.name]


@pytest.mark.parametrize("target", TARGETS)
def test_code_is_the_last_layer(target: str) -> None:
    """The layer of dependencies is below the code and is built without it."""
    copied = [copy.flag("from") for copy in stages()[target].of("COPY")]
    assert copied == [f"{target}-dependencies", "code"]
    needed = reader().needed(stages(), f"{target}-dependencies")
    assert "code" not in [stage.name for stage in needed]
    files = {word for stage in needed for copy in stage.of("COPY") for word in copy.words}
    assert {Path(word).parent for word in files - {"./"}} == {Path("deploy/lock")}


def test_cpu_dependencies_come_from_the_lock() -> None:
    assert "install --require-hashes --requirement cpu.txt" in stages()["cpu-dependencies"].of("RUN")[0].value


@pytest.mark.parametrize("target", ["cuda", "cudnn"])
def test_gpu_dependencies_come_from_the_lock_of_their_cuda(target: str) -> None:
    stage = stages()[f"{target}-dependencies"]
    default = stage.of("ARG")[0].value.removeprefix("CUDA=")
    assert f'install --require-hashes --requirement "{target}${{CUDA}}.txt"' in stage.of("RUN")[0].value
    copied = [word for copy in stage.of("COPY") for word in copy.words]
    assert f"deploy/lock/{target}{default}.txt" in copied


def test_cudnn_image_extends_the_cuda_image() -> None:
    """Same CUDA version, so that the images share downloads and layers."""
    all_stages = stages()
    assert all_stages["cudnn-dependencies"].base == "cuda-dependencies"
    arguments = [all_stages[name].of("ARG")[0].value for name in ("cuda-dependencies", "cudnn-dependencies")]
    assert arguments == ["CUDA=12"] * 2


@pytest.mark.parametrize("target", TARGETS)
def test_every_installed_package_is_pinned(target: str) -> None:
    """Packages come from an index by hash, or from no index."""
    needed = reader().needed(stages(), target)
    installing = [
        line for stage in needed for run in stage.of("RUN") for line in run.value.split("&&") if " pip " in line
    ]
    assert len(installing) >= 4
    assert not [line for line in installing if "--require-hashes" not in line and "--no-index" not in line]


@pytest.mark.parametrize("target", TARGETS)
def test_server_does_not_run_as_root(target: str) -> None:
    assert stages()[target].instructions[-1].name == "USER"
    user, _, group = last(target, "USER").value.partition(":")
    assert int(user) >= 1000
    assert int(group) >= 1000


@pytest.mark.parametrize("target", TARGETS)
def test_server_listens_on_all_addresses_of_the_container(target: str) -> None:
    assert last(target, "ENTRYPOINT").command == ["gradserve", "serve", "--host", "0.0.0.0"]
    assert last(target, "EXPOSE").words == [str(Settings.model_fields["port"].default)]


@pytest.mark.parametrize("target", TARGETS)
def test_health_check_is_readable_by_the_user(target: str) -> None:
    (copy,) = [each for each in stages()["runtime"].of("COPY") if each.words[0] == "deploy/health.py"]
    assert health(target) == ["CMD", "python", copy.words[1]]
    assert copy.flag("chmod") == "0644"


@pytest.mark.parametrize("target", TARGETS)
def test_each_target_names_its_device(target: str) -> None:
    assert environment(target)["GRADSERVE_DEVICE"] == {"cpu": "cpu"}.get(target, "cuda")


@pytest.mark.parametrize(
    ("target", "variable"),
    [
        *itertools.product(TARGETS, ("GRADSERVE_CACHE_DIR", "GRADSERVE_STATE")),
        ("cuda", "CUPY_CACHE_DIR"),
        ("cudnn", "CUPY_CACHE_DIR"),
    ],
)
def test_caches_and_state_are_on_volumes_of_the_user(target: str, variable: str) -> None:
    folder = environment(target)[variable]
    assert folder in volumes(target)
    owner = last(target, "USER").value.partition(":")[0]
    making = [i.words for i in instructions(target) if i.name == "RUN" and folder in i.words]
    assert [words for words in making if f"--owner={owner}" in words]


def test_cache_and_state_folders_are_private() -> None:
    for folder in ("/var/cache/gradserve", "/var/lib/gradserve"):
        (making,) = [run for run in stages()["runtime"].of("RUN") if folder in run.words]
        assert "--mode=0700" in making.words


@pytest.mark.parametrize("target", TARGETS)
def test_labels_match_the_project(target: str) -> None:
    prefix = "org.opencontainers.image."
    assert labels(target) == {
        prefix + "title": project()["name"],
        prefix + "description": project()["description"],
        prefix + "version": project()["version"],
        prefix + "licenses": project()["license"],
    }


@pytest.mark.parametrize("name", ["Dockerfile", ".dockerignore", "compose.yaml"])
def test_no_registry_address_is_recorded(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8").replace("http://127.0.0.1", "")
    assert not REGISTRY.findall(text)


@pytest.mark.parametrize("target", TARGETS)
def test_no_secret_is_copied_into_the_image(target: str) -> None:
    runs = [
        run for stage in reader().needed(stages(), target) for run in stage.of("RUN") if "--requirement" in run.value
    ]
    assert len(runs) >= 2
    assert all("mount=type=secret,id=pip,target=/etc/pip.conf" in run.flags for run in runs)
    assert not [i for i in instructions(target) if i.name in ("ARG", "ENV") and "PIP_" in i.value]


def test_build_context_has_only_files_of_the_image() -> None:
    sent = context() - {"Dockerfile", ".dockerignore"}
    beside = {"LICENSE", "README.md", "pyproject.toml", "deploy/health.py"}
    beside |= {f"deploy/lock/{name}.txt" for name in ("build", "cpu", "cuda12", "cuda13", "cudnn12", "cudnn13")}
    assert beside <= sent
    assert {path.split("/")[0] for path in sent - beside} == set(CODE)
    assert not [path for path in sent if path.endswith(".pyc")]


def test_build_context_has_all_code() -> None:
    files = {path.relative_to(ROOT).as_posix() for folder in CODE for path in (ROOT / folder).rglob("*.py")}
    assert files
    assert files <= context()
