"""The command as a person meets it: what is misspelt, cannot be had, or is in the way.

What starts a server, or depends on its folder or its reader, runs in a process of its own; the rest in this one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from engine import registry
from service.core.settings import (
    PREFIX,
    SECRETS,
    TEST_PREFIXES,
    Settings,
    flag,
    format_setting,
    misspelt,
    removed_settings,
    service_links,
    variable,
)
from service.core.spelling import hint
from service.web.listening import bind_socket
from tests.conftest import ANNOUNCEMENT
from tests.service.command_support import called

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "service"]


def environment(**more: str) -> dict[str, str]:
    """The variables of this process, and these."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def gradserve(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command, run to its end in a process."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder, env=environment(**variables), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that the command ends with when it is used in a way that cannot be."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("gradserve: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("gradserve: ").rstrip("\n")


def test_the_script_is_the_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"gradserve": "service.__main__:main"}


def test_the_version() -> None:
    assert gradserve("--version").stdout == f"gradserve {version('gradserve')}\n"


@pytest.mark.parametrize("command", ["serve", "settings"])
def test_help_has_every_default(command: str) -> None:
    help_ = " ".join(called(command, "--help", COLUMNS="400", GRADSERVE_PORT="no number").stdout.split())
    usual = Settings.model_construct()
    for name in Settings.model_fields.keys() - SECRETS:
        assert f"(default {format_setting(name, getattr(usual, name))}; {variable(name)})" in help_


class TestWords:
    """What is not known is refused, with the nearest word that is, where one is near."""

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["serv"], "there is no command serv; did you mean serve?"),
            (["frobnicate"], "there is no command frobnicate; gradserve --help lists the commands"),
            (["--worker", "3"], "there is no flag --worker; did you mean --workers?"),
            (["serve", "--worker=3"], "there is no flag --worker; did you mean --workers?"),
            (["--work", "2"], "there is no flag --work; did you mean --workers?"),
            (["settings", "--work", "2"], "there is no flag --work; did you mean --workers?"),
            (["serve", "--timeout-m", "2"], "there is no flag --timeout-m; did you mean --timeout-ms?"),
            (["serve", "--zzz"], "there is no flag --zzz; gradserve serve --help lists all flags"),
            (["ops", "--workers", "2"], "there is no flag --workers; gradserve ops --help lists all flags"),
            (["serve", "8000"], "gradserve serve does not take 8000; gradserve serve --help says what it takes"),
            (["ops", "matmull"], "there is no op called matmull; did you mean matmul?"),
            (["ops", "qqqq"], "there is no op called qqqq; gradserve ops lists all ops"),
            (["serve", "--port"], "argument --port: expected one argument"),
        ],
        ids=" ".join,
    )
    def test_a_word_that_is_not_known(self, arguments: list[str], said: str) -> None:
        assert sentence(called(*arguments)) == said

    def test_a_long_word_is_cut_before_it_is_compared(self) -> None:
        compared = []

        class Word(str):
            __slots__ = ()

            def __getitem__(self, key: object) -> str:
                compared.append(key)
                return super().__getitem__(key)  # type: ignore[index]

        assert hint(Word("x" * 10**6), {"serve": "serve"}, "nothing") == "nothing"
        assert compared == [slice(None, 64, None)]
        assert "x" * 64 not in sentence(called("ops", "x" * 100_000))

    def test_case_does_not_count(self) -> None:
        assert hint("SERV", {"serve": "serve"}, "nothing") == "did you mean serve?"


class TestVariables:
    """A variable that looks like a setting is one."""

    @pytest.mark.parametrize("command", ["serve", "settings"])
    def test_a_misspelt_variable(self, command: str) -> None:
        said = "the environment has GRADSERVE_TIMEOUT, which is no setting; did you mean GRADSERVE_TIMEOUT_MS?"
        assert sentence(called(command, GRADSERVE_TIMEOUT="5")) == said

    def test_a_variable_that_is_like_none(self) -> None:
        said = "the environment has GRADSERVE_ZZZ, which is no setting; gradserve serve --help lists all settings"
        assert misspelt(["GRADSERVE_ZZZ"]) == said

    def test_case_does_not_count(self) -> None:
        """Nor does it for settings."""
        assert misspelt(["gradserve_port", "Gradserve_Workers"]) is None
        assert "did you mean GRADSERVE_WORKERS?" in (misspelt(["gradserve_worker"]) or "")

    def test_what_kubernetes_makes_for_a_service_of_this_name_is_passed_over(self) -> None:
        made = {
            "GRADSERVE_SERVICE_HOST": "10.0.0.7", "GRADSERVE_SERVICE_PORT": "8000",
            "GRADSERVE_SERVICE_PORT_HTTP": "8000",
            "GRADSERVE_PORT": "tcp://10.0.0.7:8000", "GRADSERVE_PORT_8000_TCP": "tcp://10.0.0.7:8000",
            "GRADSERVE_PORT_8000_TCP_PROTO": "tcp", "GRADSERVE_PORT_8000_TCP_PORT": "8000",
            "GRADSERVE_PORT_8000_TCP_ADDR": "10.0.0.7", "GRADSERVE_GPU_SERVICE_HOST": "10.0.0.8",
            "GRADSERVE_GPU_PORT": "udp://[fd00::8]:8000", "GRADSERVE_GPU_PORT_53_UDP": "udp://[fd00::8]:53",
        }  # fmt: skip
        assert set(service_links(made)) == set(made)
        settings = called("settings", **made)
        assert settings.returncode == 0, settings.stderr
        assert "--port = 8000 " in settings.stdout
        serving = gradserve("serve", "--host", "256.0.0.1", **made)
        assert "Kubernetes" in serving.stderr
        assert "GRADSERVE_SERVICE_HOST" in serving.stderr
        assert "cannot listen on 256.0.0.1 port 8000" in serving.stderr

    @pytest.mark.parametrize(
        ("name", "value"),
        [("GRADSERVE_PORT", "8001"), ("GRADSERVE_PORT", "http"), ("GRADSERVE_PORTS", "tcp://10.0.0.7:80"),
         ("GRADSERVE_WORKERS_PORT", "1"), ("GRADSERVE_HOST", "tcp://10.0.0.7:80"), ("KUBERNETES_PORT", "tcp://a:1")],
    )  # fmt: skip
    def test_nothing_else_is(self, name: str, value: str) -> None:
        assert service_links({name: value}) == []

    def test_a_removed_setting_is_warned_about_and_the_server_starts(self) -> None:
        options = ["--port", "0", "--device", "cpu", "--workers", "1", "--state", "memory", "--coalesce", "on"]
        with subprocess.Popen(
            [*COMMAND, *options], cwd=ROOT, env=environment(GRADSERVE_COALESCE="on"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stdout.readline().startswith(ANNOUNCEMENT)
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=60)
        assert process.returncode == 0
        for name in ("GRADSERVE_COALESCE", "--coalesce"):
            (line,) = (line for line in log.splitlines() if f" {name} " in line)
            assert line.endswith(f" WARNING gradserve: {name} has no effect: coalescing was removed")

    def test_a_server_that_was_run_by_uvicorn_is_told_how_to_do_that(self) -> None:
        said = "`gradserve serve` no longer runs uvicorn; run `uvicorn service.asgi:app` instead"
        assert removed_settings(["GRADSERVE_HTTP"]) == [f"GRADSERVE_HTTP has no effect: {said}"]

    def test_a_removed_setting_is_shown_nowhere_and_refused_by_no_command(self) -> None:
        assert removed_settings(["gradserve_coalesce"]) == ["GRADSERVE_COALESCE has no effect: coalescing was removed"]
        assert removed_settings(["GRADSERVE_PORT"], ["port"]) == []
        for command in ("settings", "doctor", "serve"):
            shown_help = called(command, "--help", GRADSERVE_COALESCE="on")
            assert (shown_help.returncode, "coalesce" in shown_help.stdout) == (0, False)
        printed = called("settings", "--coalesce", "on", GRADSERVE_COALESCE="maybe")
        assert (printed.returncode, printed.stderr, "coalesce" in printed.stdout) == (0, "", False)

    def test_the_list_of_ops_does_not_mind(self) -> None:
        assert called("ops", "add", GRADSERVE_TIMEOUT="5").returncode == 0

    def test_all_that_the_project_reads_is_known(self) -> None:
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
        texts += [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile", "compose.yaml")]
        read = {name for text in texts for name in re.findall(rf"{PREFIX}[A-Z_]*[A-Z]", text)}
        assert {name for name in read if name.startswith(TEST_PREFIXES)}
        assert misspelt(read) is None


class TestSizes:
    """Sizes may have units; they are shown exactly, and so that they can be read."""

    @pytest.mark.parametrize(
        ("stated", "size"),
        [
            ("4GiB", 4 << 30), ("64MiB", 64 << 20), ("500MB", 500_000_000), ("1024", 1024), ("7kb", 7000),
            ("2 KiB", 2048), (" 3TiB ", 3 << 40), ("2048B", 2048), ("1_000", 1000),
        ],
    )  # fmt: skip
    def test_a_size(self, stated: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Settings(max_bytes=stated).max_bytes == size
        monkeypatch.setenv("GRADSERVE_MAX_BODY_BYTES", stated)
        assert Settings().max_body_bytes == size

    @pytest.mark.parametrize("stated", ["4G", "1.5GiB", "GiB", "-4GiB", "4GiBs", "1e9", "4 Gi B", "0x10"])
    def test_a_size_that_is_none(self, stated: str) -> None:
        said = sentence(called("settings", f"--max-bytes={stated}"))
        assert said == (
            f"setting --max-bytes (GRADSERVE_MAX_BYTES) is '{stated}': a size is a whole number, alone or with one of "
            "B, KB, MB, GB, TB, KiB, MiB, GiB, TiB"
        )

    def test_bounds_hold_for_sizes_with_units(self) -> None:
        assert "greater than or equal to 1024" in sentence(called("settings", "--max-header-bytes", "1000B"))

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0"), (1, "1"), (1000, "1000"), (1024, "1KiB"), (64 << 20, "64MiB"), (3 << 29, "1536MiB"),
            (500_000_000, "500000000, about 476.8MiB"), ((1 << 30) + 1, "1073741825, about 1.0GiB"),
            (9999 << 40, "9999TiB"),
        ],
    )  # fmt: skip
    def test_what_is_shown(self, size: int, text: str) -> None:
        assert format_setting("drain_bytes", size) == text
        assert Settings(drain_bytes=text.partition(",")[0]).drain_bytes == size

    def test_every_setting_in_bytes_is_a_size(self) -> None:
        for name in Settings.model_fields:
            assert (format_setting(name, 1 << 20) == "1MiB") is ("bytes" in name or name == "device_workspace")

    def test_the_command_shows_them(self) -> None:
        printed = called("settings", "--max-bytes", "4GiB", GRADSERVE_DRAIN_BYTES="500MB").stdout
        assert f"{flag('max_bytes')} = 4GiB   (default" in printed
        assert f"{flag('drain_bytes')} = 500000000, about 476.8MiB   (default 16MiB;" in printed


class TestAddresses:
    """An address that cannot be had is told in one sentence."""

    def test_a_host_that_is_not_known(self) -> None:
        said = sentence(gradserve("--host", "no.such.host.invalid", "--port", "0"))
        assert said.startswith("cannot listen on no.such.host.invalid port 0: the host is not known (")

    def test_an_empty_host(self) -> None:
        """It would mean every address of the machine; that is said with 0.0.0.0."""
        assert sentence(called("serve", GRADSERVE_HOST="")).startswith("setting --host (GRADSERVE_HOST) is '': ")

    def test_a_host_that_is_no_name(self) -> None:
        said = sentence(gradserve("--host", "a..b", "--port", "0"))
        assert said == "cannot listen on a..b port 0: the host is not a name that can be looked up"

    def test_a_host_that_is_not_ours(self) -> None:
        """The address is one that is kept for documentation (RFC 5737)."""
        said = sentence(gradserve("--host", "192.0.2.1", "--port", "0"))
        assert said == "cannot listen on 192.0.2.1 port 0: Cannot assign requested address"

    def test_a_port_in_use(self) -> None:
        with bind_socket("127.0.0.1", 0) as taken:
            taken.listen()
            port = str(taken.getsockname()[1])
            said = sentence(gradserve("--port", port))
        assert said == f"cannot listen on 127.0.0.1 port {port}: Address already in use"

    def test_a_port_of_the_metrics_in_use(self) -> None:
        with bind_socket("127.0.0.1", 0) as taken:
            taken.listen()
            port = str(taken.getsockname()[1])
            said = sentence(gradserve("--port", "0", "--metrics-port", port))
        assert said == f"cannot listen on 127.0.0.1 port {port} for metrics: Address already in use"

    def test_a_host_of_the_metrics_that_is_no_name(self) -> None:
        said = sentence(gradserve("--port", "0", "--metrics-port", "0", "--metrics-host", "a..b"))
        assert said == "cannot listen on a..b port 0 for metrics: the host is not a name that can be looked up"


class TestReaders:
    """A reader that leaves, as in `gradserve ops | head -1`, ends it quietly; here it has left before anything came."""

    def unread(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            return subprocess.run(
                [*COMMAND, *arguments],
                cwd=ROOT,
                stdout=pipe,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=120,
            )

    @pytest.mark.parametrize("arguments", [["settings"], ["ops"]], ids=" ".join)
    def test_the_status_is_that_of_other_tools(self, arguments: list[str]) -> None:
        done = self.unread(*arguments)
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")

    def test_help_is_quiet_too(self) -> None:
        assert self.unread("serve", "--help").stderr == ""


class TestNeighbours:
    """The packages have plain names: a folder that has others of these names is noticed."""

    @pytest.mark.parametrize("name", ["schemas.py", "engine.py", "engine/__init__.py", "schemas/__init__.py"])
    def test_a_package_that_hides_ours(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise ImportError('not to be run')", encoding="utf-8")
        said = sentence(gradserve("--version", folder=tmp_path))
        package = name.partition("/")[0].removesuffix(".py")
        assert said == (
            f"{tmp_path / name} stands before gradserve's own {package} on Python's path; "
            "start gradserve in another folder, or install it in an environment of its own"
        )

    def test_a_folder_without_a_package_hides_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "engine").mkdir()
        (tmp_path / "engine/notes.txt").write_text("", encoding="utf-8")
        assert gradserve("--version", folder=tmp_path).returncode == 0

    def test_ours_are_found_from_elsewhere(self, tmp_path: Path) -> None:
        assert gradserve("ops", folder=tmp_path).stdout.count("\n") == len(registry().ops)
