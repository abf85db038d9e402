"""The command as a user meets it: misspelt words, unavailable addresses, shadowed packages.

Tests that start a server, or depend on the folder or the reader, run the command in a process of its own.
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
    """The environment of this process, with additions."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def gradserve(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to completion in a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder, env=environment(**variables), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def usage_error(result: subprocess.CompletedProcess[str]) -> str:
    """The one-line error of a command that was used wrongly."""
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert result.stderr.startswith("gradserve: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr.removeprefix("gradserve: ").rstrip("\n")


def test_console_script_points_to_the_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"gradserve": "service.__main__:main"}


def test_version() -> None:
    assert gradserve("--version").stdout == f"gradserve {version('gradserve')}\n"


@pytest.mark.parametrize("command", ["serve", "settings"])
def test_help_shows_every_default(command: str) -> None:
    help_ = " ".join(called(command, "--help", COLUMNS="400", GRADSERVE_PORT="no number").stdout.split())
    defaults = Settings.model_construct()
    for name in Settings.model_fields.keys() - SECRETS:
        assert f"(default {format_setting(name, getattr(defaults, name))}; {variable(name)})" in help_


class TestWords:
    """Unknown words are refused, with a suggestion if one is close."""

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
            (["serve", "8000"], "gradserve serve does not accept 8000; see gradserve serve --help"),
            (["ops", "matmull"], "there is no op called matmull; did you mean matmul?"),
            (["ops", "qqqq"], "there is no op called qqqq; gradserve ops lists all ops"),
            (["serve", "--port"], "argument --port: expected one argument"),
        ],
        ids=" ".join,
    )
    def test_unknown_word(self, arguments: list[str], said: str) -> None:
        assert usage_error(called(*arguments)) == said

    def test_long_word_is_truncated_before_comparison(self) -> None:
        compared = []

        class Word(str):
            __slots__ = ()

            def __getitem__(self, key: object) -> str:
                compared.append(key)
                return super().__getitem__(key)  # type: ignore[index]

        assert hint(Word("x" * 10**6), {"serve": "serve"}, "nothing") == "nothing"
        assert compared == [slice(None, 64, None)]
        assert "x" * 64 not in usage_error(called("ops", "x" * 100_000))

    def test_suggestions_ignore_case(self) -> None:
        assert hint("SERV", {"serve": "serve"}, "nothing") == "did you mean serve?"


class TestVariables:
    """Variables that look like settings are checked like settings."""

    @pytest.mark.parametrize("command", ["serve", "settings"])
    def test_misspelt_variable(self, command: str) -> None:
        expected = "the environment variable GRADSERVE_TIMEOUT is not a setting; did you mean GRADSERVE_TIMEOUT_MS?"
        assert usage_error(called(command, GRADSERVE_TIMEOUT="5")) == expected

    def test_unknown_variable_without_a_close_match(self) -> None:
        expected = "the environment variable GRADSERVE_ZZZ is not a setting; gradserve serve --help lists all settings"
        assert misspelt(["GRADSERVE_ZZZ"]) == expected

    def test_variable_names_ignore_case(self) -> None:
        """Settings ignore case as well."""
        assert misspelt(["gradserve_port", "Gradserve_Workers"]) is None
        assert "did you mean GRADSERVE_WORKERS?" in (misspelt(["gradserve_worker"]) or "")

    def test_kubernetes_service_links_are_ignored(self) -> None:
        links = {
            "GRADSERVE_SERVICE_HOST": "10.0.0.7", "GRADSERVE_SERVICE_PORT": "8000",
            "GRADSERVE_SERVICE_PORT_HTTP": "8000",
            "GRADSERVE_PORT": "tcp://10.0.0.7:8000", "GRADSERVE_PORT_8000_TCP": "tcp://10.0.0.7:8000",
            "GRADSERVE_PORT_8000_TCP_PROTO": "tcp", "GRADSERVE_PORT_8000_TCP_PORT": "8000",
            "GRADSERVE_PORT_8000_TCP_ADDR": "10.0.0.7", "GRADSERVE_GPU_SERVICE_HOST": "10.0.0.8",
            "GRADSERVE_GPU_PORT": "udp://[fd00::8]:8000", "GRADSERVE_GPU_PORT_53_UDP": "udp://[fd00::8]:53",
        }  # fmt: skip
        assert set(service_links(links)) == set(links)
        settings = called("settings", **links)
        assert settings.returncode == 0, settings.stderr
        assert "--port = 8000 " in settings.stdout
        serving = gradserve("serve", "--host", "256.0.0.1", **links)
        assert "Kubernetes" in serving.stderr
        assert "GRADSERVE_SERVICE_HOST" in serving.stderr
        assert "cannot listen on port 8000 on 256.0.0.1" in serving.stderr

    @pytest.mark.parametrize(
        ("name", "value"),
        [("GRADSERVE_PORT", "8001"), ("GRADSERVE_PORT", "http"), ("GRADSERVE_PORTS", "tcp://10.0.0.7:80"),
         ("GRADSERVE_WORKERS_PORT", "1"), ("GRADSERVE_HOST", "tcp://10.0.0.7:80"), ("KUBERNETES_PORT", "tcp://a:1")],
    )  # fmt: skip
    def test_other_variables_are_not_service_links(self, name: str, value: str) -> None:
        assert service_links({name: value}) == []

    def test_removed_setting_only_warns(self) -> None:
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

    def test_removed_http_setting_names_the_uvicorn_command(self) -> None:
        hint_text = "`gradserve serve` no longer runs uvicorn; run `uvicorn service.asgi:app` instead"
        assert removed_settings(["GRADSERVE_HTTP"]) == [f"GRADSERVE_HTTP has no effect: {hint_text}"]

    def test_removed_setting_is_hidden_and_accepted(self) -> None:
        assert removed_settings(["gradserve_coalesce"]) == ["GRADSERVE_COALESCE has no effect: coalescing was removed"]
        assert removed_settings(["GRADSERVE_PORT"], ["port"]) == []
        for command in ("settings", "doctor", "serve"):
            help_result = called(command, "--help", GRADSERVE_COALESCE="on")
            assert (help_result.returncode, "coalesce" in help_result.stdout) == (0, False)
        result = called("settings", "--coalesce", "on", GRADSERVE_COALESCE="maybe")
        assert (result.returncode, result.stderr, "coalesce" in result.stdout) == (0, "", False)

    def test_ops_ignores_misspelt_variables(self) -> None:
        assert called("ops", "add", GRADSERVE_TIMEOUT="5").returncode == 0

    def test_variables_used_in_the_project_exist(self) -> None:
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
        texts += [(ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "Dockerfile", "compose.yaml")]
        read = {name for text in texts for name in re.findall(rf"{PREFIX}[A-Z_]*[A-Z]", text)}
        assert {name for name in read if name.startswith(TEST_PREFIXES)}
        assert misspelt(read) is None


class TestSizes:
    """Sizes may have units; they are shown exactly and readably."""

    @pytest.mark.parametrize(
        ("stated", "size"),
        [
            ("4GiB", 4 << 30), ("64MiB", 64 << 20), ("500MB", 500_000_000), ("1024", 1024), ("7kb", 7000),
            ("2 KiB", 2048), (" 3TiB ", 3 << 40), ("2048B", 2048), ("1_000", 1000), ("4G", 4 << 30), ("1k", 1024),
        ],
    )  # fmt: skip
    def test_valid_sizes(self, stated: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Settings(max_bytes=stated).max_bytes == size
        monkeypatch.setenv("GRADSERVE_MAX_BODY_BYTES", stated)
        assert Settings().max_body_bytes == size

    @pytest.mark.parametrize("stated", ["4GG", "1.5GiB", "GiB", "-4GiB", "4GiBs", "1e9", "4 Gi B", "0x10"])
    def test_malformed_size_is_refused(self, stated: str) -> None:
        error = usage_error(called("settings", f"--max-bytes={stated}"))
        assert error == (
            f"--max-bytes (GRADSERVE_MAX_BYTES) cannot be “{stated}”: a size is a whole number of bytes, or one with a "
            "unit, as in 4GiB (units: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB, K, M, G, T)"
        )

    def test_bounds_apply_to_sizes_with_units(self) -> None:
        assert "must be a size of at least 1024" in usage_error(called("settings", "--max-header-bytes", "1000B"))

    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0"), (1, "1"), (1000, "1000"), (1024, "1KiB"), (64 << 20, "64MiB"), (3 << 29, "1536MiB"),
            (500_000_000, "500000000, about 476.8MiB"), ((1 << 30) + 1, "1073741825, about 1.0GiB"),
            (9999 << 40, "9999TiB"),
        ],
    )  # fmt: skip
    def test_size_formatting(self, size: int, text: str) -> None:
        assert format_setting("drain_bytes", size) == text
        assert Settings(drain_bytes=text.partition(",")[0]).drain_bytes == size

    def test_every_setting_in_bytes_is_a_size(self) -> None:
        for name in Settings.model_fields:
            assert (format_setting(name, 1 << 20) == "1MiB") is ("bytes" in name or name == "device_workspace")

    def test_settings_command_shows_sizes(self) -> None:
        result = called("settings", "--max-bytes", "4GiB", GRADSERVE_DRAIN_BYTES="500MB").stdout
        assert f"{flag('max_bytes')} = 4GiB   (default" in result
        assert f"{flag('drain_bytes')} = 500000000, about 476.8MiB   (default 16MiB;" in result


class TestAddresses:
    """An unavailable address is reported in one sentence."""

    def test_unknown_host(self) -> None:
        error = usage_error(gradserve("--host", "no.such.host.invalid", "--port", "0"))
        assert error.startswith("cannot listen on port 0 on no.such.host.invalid: unknown host (")

    def test_empty_host(self) -> None:
        """It would mean every address of the machine, which is spelt 0.0.0.0."""
        assert usage_error(called("serve", GRADSERVE_HOST="")).startswith("--host (GRADSERVE_HOST) cannot be “”: ")

    def test_malformed_host_name(self) -> None:
        error = usage_error(gradserve("--host", "a..b", "--port", "0"))
        assert error == "cannot listen on port 0 on a..b: invalid host name"

    def test_address_of_another_machine(self) -> None:
        """The address is reserved for documentation (RFC 5737)."""
        error = usage_error(gradserve("--host", "192.0.2.1", "--port", "0"))
        assert error == "cannot listen on port 0 on 192.0.2.1: Cannot assign requested address"

    def test_port_in_use(self) -> None:
        with bind_socket("127.0.0.1", 0) as listener:
            listener.listen()
            port = str(listener.getsockname()[1])
            error = usage_error(gradserve("--port", port))
        assert error == f"cannot listen on port {port} on 127.0.0.1: Address already in use"

    def test_metrics_port_in_use(self) -> None:
        with bind_socket("127.0.0.1", 0) as listener:
            listener.listen()
            port = str(listener.getsockname()[1])
            error = usage_error(gradserve("--port", "0", "--metrics-port", port))
        assert error == f"cannot listen on port {port} on 127.0.0.1 for metrics: Address already in use"

    def test_malformed_metrics_host_name(self) -> None:
        error = usage_error(gradserve("--port", "0", "--metrics-port", "0", "--metrics-host", "a..b"))
        assert error == "cannot listen on port 0 on a..b for metrics: invalid host name"


class TestClosedPipe:
    """A closed pipe, as in `gradserve ops | head -1`, ends the command quietly; these tests close it beforehand."""

    def run_with_closed_pipe(self, *arguments: str) -> subprocess.CompletedProcess[str]:
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
    def test_exit_status_is_that_of_sigpipe(self, arguments: list[str]) -> None:
        result = self.run_with_closed_pipe(*arguments)
        assert (result.returncode, result.stderr) == (128 + signal.SIGPIPE, "")

    def test_help_is_quiet(self) -> None:
        assert self.run_with_closed_pipe("serve", "--help").stderr == ""


class TestShadowing:
    """Our packages have plain names: a folder with packages of the same names is detected."""

    @pytest.mark.parametrize("name", ["schemas.py", "engine.py", "engine/__init__.py", "schemas/__init__.py"])
    def test_package_that_shadows_ours_is_reported(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("raise ImportError('not to be run')", encoding="utf-8")
        error = usage_error(gradserve("--version", folder=tmp_path))
        package = name.partition("/")[0].removesuffix(".py")
        assert error == (
            f"Python finds {tmp_path / name} before gradserve's own package {package}; "
            "start gradserve in another folder, or install it in a separate environment"
        )

    def test_folder_without_a_package_shadows_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "engine").mkdir()
        (tmp_path / "engine/notes.txt").write_text("", encoding="utf-8")
        assert gradserve("--version", folder=tmp_path).returncode == 0

    def test_packages_are_found_from_another_folder(self, tmp_path: Path) -> None:
        assert gradserve("ops", folder=tmp_path).stdout.count("\n") == len(registry().ops)
