"""Secrecy of keys: a server at log level debug shows no part of a key in logs, answers, metrics or `ps`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.core.keys.caller import digest_of, new_key
from tests.conftest import ANNOUNCEMENT, ROOT
from tests.service.command_support import called
from tests.service.core.keys.cases import bearer, record, sent, unsound, write
from tests.service.support import SQUARES, exchange

pytestmark = pytest.mark.slow

KEY, OTHER, OWN = new_key(), new_key(), new_key()
#: includes the hashes: they grant no access, but are confidential
TRACES = [*(key[3:] for key in (KEY, OTHER, OWN)), *(digest_of(key).hex() for key in (KEY, OTHER, OWN))]
LENGTH = 8


def traces(text: str | bytes) -> list[str]:
    """Find all parts of keys and of their hashes in a text."""
    decoded = text.decode("latin-1") if isinstance(text, bytes) else text
    return [
        part for trace in TRACES for i in range(len(trace) - LENGTH + 1) if (part := trace[i : i + LENGTH]) in decoded
    ]


class Running:
    """Server process with a key file and a key from the environment."""

    def __init__(self, folder: Path) -> None:
        self.file = write(folder / "keys.json", [record("alice", KEY), record("bob", OTHER, rate="1000/s")])
        self._log = folder / "log"
        command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--keys-file", str(self.file)]
        command += ["--log-level", "debug", "--cors-origins", "https://app.example"]
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, cwd=ROOT, env={**os.environ, "GRADSERVE_API_KEY": OWN}
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line.startswith(ANNOUNCEMENT), self._log.read_text(encoding="utf-8")
        self.url = line.removeprefix(ANNOUNCEMENT).strip()

    def stop(self) -> str:
        """Stop the server and return all its output."""
        self.process.terminate()
        rest, _ = self.process.communicate(timeout=60)
        return self._log.read_text(encoding="utf-8") + rest.decode()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    server = Running(tmp_path)
    yield server
    server.process.kill()
    server.process.communicate()


def test_no_part_of_a_key_is_shown(running: Running) -> None:
    address = (httpx.URL(running.url).host, httpx.URL(running.url).port or 80)
    answers: list[bytes] = []
    for headers in ([bearer(KEY)], [bearer(OTHER)], [bearer(OWN)], *unsound(KEY, OTHER).values()):
        for method, path, body in (
            ("POST", "/v1/gradients", b"{"),
            ("POST", "/v1/forward?timeout_ms=x", b"{}"),
            ("POST", "/v1/graphs", b'{"graph": 1}'),
            ("GET", "/v1/graphs/none", b""),
            ("GET", "/nowhere", b""),
            ("GET", "/metrics", b""),
            ("BREW", "/v1/ops", b""),
        ):
            answers.append(exchange(address, sent(method, path, body, *headers, b"Connection: close")))
            ambiguous = sent(method, path, body, *headers, b"Transfer-Encoding: chunked")
            answers.append(exchange(address, ambiguous, half_close=True))
    with httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        assert client.post("/v1/gradients", json=SQUARES).status_code == 200
        metrics = client.get("/metrics")
        assert 'gradserve_requests_total{call="gradients",facade="",status="401"}' in metrics.text
        assert 'gradserve_requests_denied_total{reason="unauthenticated"}' in metrics.text
        answers += [metrics.content, client.get("/openapi.json").content]
    with httpx.Client(base_url=running.url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        for path in (
            f"/v1/graphs/{KEY}",
            f"/v1/graphs/{KEY}/forward",
            f"/v1/tensors/{OWN}",
            f"/{OTHER}/%67s%5f{KEY[3:]}",
        ):
            assert client.get(path, headers={"X-Request-Id": OWN}).status_code in (404, 405), "the sender may see it"
    running.file.write_text('{"format": 1, "keys": [{"name": "eve", "sha256": "' + KEY + '"}]}', encoding="ascii")
    assert not [trace for answer in answers for trace in traces(answer)]
    shown = processes(running.process.pid)
    assert "keys.json" in shown, "that is where its command line stands"
    assert not traces(shown)
    output = running.stop()
    assert "caller=alice method=POST path=/v1/gradients status=200" in output
    assert "caller=(environment) method=GET path=/metrics status=200" in output
    assert "status=401" in output
    assert "path=/v1/tensors/gs_… status=404" in output
    assert not traces(output)


def processes(pid: int) -> str:
    """The output of `ps` about a server and its workers."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    own = [line for line in listed.splitlines() if re.match(rf"\s*(?:{pid}\s|\d+\s+{pid}\s)", line)]
    assert len(own) > 1, "a server has workers"
    return "\n".join(own)


def test_workers_do_not_inherit_the_key(running: Running) -> None:
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text(encoding="ascii")
    assert children.split()
    for child in children.split():
        assert not traces(Path(f"/proc/{child}/environ").read_bytes())


@pytest.mark.parametrize("command", [["settings"], ["serve", "--help"], ["keys", "--help"]])
def test_settings_and_help_do_not_show_the_key(command: list[str]) -> None:
    done = called(*command, GRADSERVE_API_KEY=OWN)
    assert done.returncode == 0
    assert not traces(done.stdout + done.stderr)
    assert (
        command != ["settings"] or "\nGRADSERVE_API_KEY = set   (default not set; GRADSERVE_API_KEY)\n" in done.stdout
    )


def test_key_on_the_command_line_is_refused() -> None:
    for arguments in (["--api-key", OWN], [f"--api-key={OWN}"], ["settings", "--api-key", OWN]):
        done = called(*arguments)
        assert done.returncode == 2
        message = "--api-key is not a flag, because other users can see flags; set GRADSERVE_API_KEY instead"
        assert done.stderr == f"gradserve: {message}\n"


@pytest.mark.parametrize(
    "key",
    ["", "short", OWN + " ", OWN + "\n", "ключ" * 10, "x" * 600, "Bearer " + OWN],
    ids=[
        "none",
        "short",
        "a space",
        "a line end",
        "no ASCII",
        "long",
        "a whole head",
    ],  # not the key, which differs in each run
)
def test_unusable_key_is_not_shown(key: str) -> None:
    done = called("settings", GRADSERVE_API_KEY=key)
    assert done.returncode == 2
    form = "a key has 22 to 512 letters, digits and characters of -._~+/, and may end with ="
    assert done.stderr == f"gradserve: GRADSERVE_API_KEY cannot be used: {form}\n"


def run_command(*arguments: str, **variables: str) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_secrets_are_read_from_files(tmp_path: Path) -> None:
    """`GRADSERVE_API_KEY_FILE` names a file, as Docker and Kubernetes mount secrets."""
    file = tmp_path / "key"
    file.write_text(f"{OWN}\n", "utf-8")
    done = called("settings", GRADSERVE_API_KEY_FILE=str(file))
    assert (done.returncode, OWN in done.stdout) == (0, False)
    assert "\nGRADSERVE_API_KEY = set   (" in done.stdout
    both = called("settings", GRADSERVE_API_KEY=OWN, GRADSERVE_API_KEY_FILE=str(file))
    assert both.stderr == "gradserve: set GRADSERVE_API_KEY or GRADSERVE_API_KEY_FILE, not both\n"
    absent = called("settings", GRADSERVE_API_KEY_FILE="/nowhere/key")
    sentence = "GRADSERVE_API_KEY_FILE names /nowhere/key, which cannot be read: No such file or directory"
    assert (absent.returncode, absent.stderr) == (2, f"gradserve: {sentence}\n")
    file.write_text("short", "utf-8")
    assert "short" not in called("settings", GRADSERVE_API_KEY_FILE=str(file)).stderr


class TestPublicAddress:
    """A server without keys does not start on an address that other machines can reach."""

    @pytest.mark.parametrize("host", ["0.0.0.0", "::"])
    def test_refusal_explains_the_options(self, host: str) -> None:
        done = run_command("--host", host, "--port", "0")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"gradserve: --host {host} accepts connections from other machines, but the server has no API keys; set "
            "--keys-file or GRADSERVE_API_KEY, or --insecure if anyone may use the server\n"
        )

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
    def test_server_starts_on_the_loopback(self, host: str) -> None:
        assert starts("--host", host)

    @pytest.mark.parametrize(
        ("options", "variables"),
        [
            (["--insecure"], {}),
            (["--insecure", "on"], {}),
            ([], {"GRADSERVE_INSECURE": "on"}),
            ([], {"GRADSERVE_API_KEY": OWN}),
        ],
    )
    def test_server_starts_with_a_key_or_insecure(self, options: list[str], variables: dict[str, str]) -> None:
        assert starts("--host", "0.0.0.0", *options, **variables)

    def test_missing_key_file_is_reported(self, tmp_path: Path) -> None:
        done = run_command("--keys-file", str(tmp_path / "keys.json"), "--port", "0")
        assert (done.returncode, done.stdout) == (2, "")
        message = f"cannot use the key file {tmp_path / 'keys.json'}: No such file or directory"
        assert done.stderr == f"gradserve: {message}\n"


def starts(*options: str, **variables: str) -> bool:
    """Start a server, stop it again, and return whether it listened."""
    command = [sys.executable, "-m", "service", "--port", "0", "--device", "cpu", "--workers", "1", *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "GRADSERVE_LOG_LEVEL": "error", **variables},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    process.terminate()
    process.communicate(timeout=60)
    return line.startswith(ANNOUNCEMENT)
