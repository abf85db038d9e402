"""The command: serve, settings, ops."""

from __future__ import annotations

import socket

import pytest

from engine import registry
from service.cli import main
from service.core import machine
from service.core.settings import SECRETS, Settings, flag, variable
from service.web.listening import bind_socket, socket_url

Capture = pytest.CaptureFixture[str]


def output(capsys: Capture, *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def complaint(capsys: Capture, *arguments: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    return capsys.readouterr().err


def test_settings_lists_every_setting(capsys: Capture) -> None:
    text = output(capsys, "settings")
    for name, info in Settings.model_fields.items():
        assert f"{variable(name) if name in SECRETS else flag(name)} = " in text
        assert variable(name) in text
        assert info.description
        assert info.description in text


def test_flag_overrides_the_environment(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_TIMEOUT_MS", "111")
    assert "--timeout-ms = 111   (default 30000;" in output(capsys, "settings")
    assert "--timeout-ms = 222   (default 30000;" in output(capsys, "settings", "--timeout-ms", "222")


def test_origins_are_separated_by_commas(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_CORS_ORIGINS", "https://a.example, https://b.example,")
    assert "--cors-origins = https://a.example,https://b.example " in output(capsys, "settings")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", "70000"),
        ("port", "http"),
        ("device", "tpu"),
        ("workers", "0"),
        ("timeout-ms", "-1"),
        ("body-timeout", "nan"),
        ("determinism", "exact"),
        ("compile", "never"),
        ("cache-dir", "~nobody-of-this-name/there"),
    ],
)
def test_bad_setting_is_reported_in_one_sentence(capsys: Capture, name: str, value: str) -> None:
    error = complaint(capsys, "serve", f"--{name}", value)
    assert error.startswith(f"gradserve: --{name} (GRADSERVE_{name.replace('-', '_').upper()}) ")
    assert f"“{value}”" in error
    assert error.count("\n") == 1


def test_bad_variable_is_reported(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADSERVE_PORT", "http")
    assert "--port (GRADSERVE_PORT) must be a whole number" in complaint(capsys, "settings")


def test_port_already_in_use(capsys: Capture) -> None:
    with bind_socket("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        error = complaint(capsys, "--port", str(port))
    assert error == f"gradserve: cannot listen on port {port} on 127.0.0.1: Address already in use\n"


@pytest.mark.slow
def test_cuda_without_a_gpu_is_refused(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.cuda.cupy_backend.is_available", lambda: False)
    assert "no GPU" in complaint(capsys, "serve", "--port", "0", "--device", "cuda")


def test_ops_lists_every_op(capsys: Capture) -> None:
    lines = output(capsys, "ops").splitlines()
    assert [line.split()[0] for line in lines] == list(registry().ops)


@pytest.mark.parametrize("spelling", ["sum", "SumDimOp"])
def test_ops_describes_one_op(capsys: Capture, spelling: str) -> None:
    text = output(capsys, "ops", spelling)
    assert text.startswith("sum(x)\n")
    for fragment in ("gradient: ", "dtypes: ", "attribute axes (ints", "alias SumDimOp (born)"):
        assert fragment in text


def test_unknown_op_gets_a_suggestion(capsys: Capture) -> None:
    assert complaint(capsys, "ops", "additon") == "gradserve: there is no op called additon; did you mean add?\n"


def test_accepted_connections_disable_nagle() -> None:
    """With Nagle's algorithm, the second write of each answer would wait for a delayed acknowledgement."""
    with bind_socket("127.0.0.1", 0) as listening:
        listening.listen()
        with socket.create_connection(listening.getsockname(), timeout=30), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_socket_urls() -> None:
    with bind_socket("127.0.0.1", 0) as v4:
        assert socket_url("127.0.0.1", v4) == f"http://127.0.0.1:{v4.getsockname()[1]}"
    if socket.has_ipv6:
        with bind_socket("::1", 0) as v6:
            assert socket_url("::1", v6) == f"http://[::1]:{v6.getsockname()[1]}"


def test_default_max_bytes_follows_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the memory, divided by the workers; on a small machine, the memory that the processes leave free."""
    monkeypatch.setattr(machine, "cpus", lambda: 4)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 64 << 30)
    assert Settings(workers=4).max_bytes == 8 << 30
    monkeypatch.setattr(machine, "memory_bytes", lambda: 4 << 30)
    assert Settings(workers=2).max_bytes < 1 << 30
