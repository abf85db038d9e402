"""What the doctor says of machines, folders and files that the tests have made ill."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cuda.libraries import CardLibrary
from engine.runtime.crash_record import LastWords
from service.admin.diagnosis import Verdict
from service.admin.doctor import gradient, port
from service.admin.host_checks import (
    _compute_value,
    blas,
    caches,
    card_libraries,
    clock,
    confinement,
    descriptors,
    gpu,
    kernels,
    memory,
    processors,
)
from service.admin.place_checks import cache, certificate, incidents, keys, state
from service.cli import main
from service.core import machine
from service.core.settings import Settings
from service.web.listening import bind_socket
from service.web.server_state import max_descriptors
from service.workers.confinement import KernelSupport, kernel_support
from service.workers.incidents import Incidents
from service.workers.topology import typical_footprint
from tests.conftest import RunningServer
from tests.service.store.memory_objects import MemoryObjects

OK, WARN, FAIL = Verdict


def made(**stated: object) -> Settings:
    return Settings(device="cpu", **stated)


class TestSoftware:
    def test_what_is_installed_here_computes(self) -> None:
        assert blas(made()).level is OK
        assert gpu(made()).level is OK

    def test_a_kernel_is_compiled(self) -> None:
        pytest.importorskip("llvmlite")
        found = kernels(made())
        assert found.level is OK, found
        assert "a kernel was compiled" in found.says

    def test_no_compiler_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._COMPILE_SECONDS", 0.0)
        assert kernels(made()).level is WARN

    def test_a_kernel_that_computes_something_else_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("llvmlite")
        answers = iter(range(10**6))
        monkeypatch.setattr(
            "service.admin.host_checks._compute_value", lambda worker, real=_compute_value: real(worker) + next(answers)
        )
        assert kernels(made()).level is FAIL

    def test_a_gpu_that_is_asked_for_and_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engine.cuda.cupy_backend.is_available", lambda: False)
        assert gpu(Settings(device="cuda")).level is FAIL
        monkeypatch.setattr(machine, "visible_gpus", lambda: ("0",))
        found = gpu(Settings(device="auto"))
        assert found.level is WARN
        assert "gradserve[cuda12]" in found.advice

    def test_libraries_of_a_card_are_told_with_what_is_used_instead(self, monkeypatch: pytest.MonkeyPatch) -> None:
        there = CardLibrary("cublasLt", "/lib/libcublasLt.so.13", "13.1.0", loaded=object())
        found = {"cublasLt": there, "nvJitLink": CardLibrary("nvJitLink", "/lib/j.so", "13.0", loaded=object())}
        missing = CardLibrary("cudnn", missing="it is not installed")
        monkeypatch.setattr("service.admin.host_checks.card_library", lambda name: found.get(name, missing))
        told = card_libraries(Settings(device="cuda"))
        assert told.level is WARN
        assert "cublasLt 13.1.0, /lib/libcublasLt.so.13" in told.says
        assert "cudnn was not found: it is not installed; instead: convolutions by columns" in told.says
        found["cudnn"] = CardLibrary("cudnn", "/lib/c.so", "9.28.1", loaded=object())
        assert card_libraries(Settings(device="cuda")).level is OK

    def test_libraries_of_a_card_are_asked_for_where_one_is_wanted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks.card_library", pytest.fail)
        assert card_libraries(made()).level is OK
        monkeypatch.setattr(machine, "visible_gpus", lambda: ())
        assert card_libraries(Settings(device="auto")).level is OK


class TestConfinement:
    def test_it_is_tried(self) -> None:
        found = confinement(made())
        if kernel_support().missing:
            assert found.level is WARN
        else:
            tried = "workers cannot open files, make sockets, start programs, signal the server: tried, with Landlock"
            assert found == (OK, f"{tried} {kernel_support().landlock} and seccomp", "")

    def test_it_is_off(self) -> None:
        assert confinement(made(confine="off")).level is WARN

    def test_a_kernel_that_has_none_of_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The process that tries is told nothing, and so can do it all."""
        monkeypatch.setattr("service.admin.host_checks.kernel_support", lambda: KernelSupport(0, filters=False))
        monkeypatch.setattr("service.admin.host_checks.environment_of", lambda _: {})
        found = confinement(made())
        assert found.level is WARN
        assert found.says == (
            "workers can open files, make sockets, start programs, signal the server: files are not kept from workers "
            "(no Landlock); system calls are not filtered (no seccomp)"
        )

    def test_a_state_that_workers_would_read(self) -> None:
        found = confinement(made(state=str(Path(sys.prefix) / "lib" / "state")))
        assert found.level is FAIL
        assert found.says.startswith("--state lies in ")


class TestIncidents:
    def test_there_were_none(self, tmp_path: Path) -> None:
        assert incidents(made(cache_dir=tmp_path)).level is OK
        assert incidents(made(cache_dir=None)).level is OK

    def test_the_last_one_is_told(self, tmp_path: Path) -> None:
        noted = Incidents(tmp_path)
        noted.note(1, signal.SIGKILL, LastWords("", "", ""))
        found = incidents(made(cache_dir=tmp_path))
        assert found.level is WARN
        assert found.says.startswith("1 worker was ended by a signal, the last one by SIGKILL, at no plan, on 2")
        for _ in range(2):
            noted.note(1, signal.SIGSEGV, LastWords("ab" * 32, "", "exp (node 1)"))
        found = incidents(made(cache_dir=tmp_path))
        assert "3 workers were ended by a signal, the last one by SIGSEGV, at plan abababababababab…, exp (node 1)" in (
            found.says
        )
        assert found.says.endswith("; a plan runs without kernels for it")


class TestResources:
    def test_workers_without_processors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "cpus", lambda: 2)
        assert processors(made(workers=2)).level is OK
        assert processors(made(workers=3)) == (
            WARN,
            f"2 of {os.cpu_count()} processors may be used, by 3 workers",
            "more workers than processors wait for each other: --workers 2",
        )

    @pytest.mark.parametrize(
        ("max_bytes", "held", "level"), [(1, 1, OK), (3, 2, WARN), (2, 4, WARN), (5, 1, FAIL)], ids=str
    )
    def test_budgets(self, max_bytes: int, held: int, level: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "memory_bytes", lambda: 8 << 30)
        monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda: 8 << 30)
        others = {"plan_cache_bytes": 1 << 30, "max_tensor_bytes": 2 << 30}
        settings = made(workers=2, max_bytes=max_bytes << 30, held_bytes=held << 30, **others)
        assert memory(settings).level is level

    def test_memory_that_others_have(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda: 1 << 20)
        found = memory(made())
        assert found.level is WARN
        assert "stop what else runs here" in found.advice

    def test_the_defaults_fit_any_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for size in (1 << 29, 1 << 31, 1 << 38):
            monkeypatch.setattr(machine, "memory_bytes", lambda size=size: size)
            monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda size=size: size)
            assert memory(made(workers=2)).level is OK

    @pytest.mark.parametrize(
        ("whole", "level", "advice"),
        [
            (1 << 40, OK, ""),
            (2 << 30, WARN, "that may be more than there is: lower --plan-cache-bytes"),
            (1 << 28, WARN, "that is more than there is: lower --workers"),
        ],
    )
    def test_what_caches_settle_at(
        self, whole: int, level: Verdict, advice: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = made(workers=2, plan_cache_bytes=2 << 30, max_graph_bytes=1 << 28)
        monkeypatch.setattr(machine, "memory_bytes", lambda: whole)
        found = caches(settings)
        assert (found.level, found.advice) == (level, advice)
        usual = typical_footprint(settings)
        parts = f"the front at {usual.front >> 20} MiB, 4 workers at {usual.worker >> 20} MiB"
        assert parts in found.says

    def test_descriptors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
        assert descriptors(made(max_connections=3000, max_tensors=500)).level is OK
        assert descriptors(made(max_connections=4096, max_tensors=0)).level is WARN
        assert descriptors(made(max_connections=3000)).level is WARN, "a large tensor has one, too"

    def test_the_doctor_wants_as_many_descriptors_as_a_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = made(max_connections=1000, max_tensors=2000)
        wanted = max_descriptors(settings)
        for there, level in (wanted, OK), (wanted - 1, WARN):
            monkeypatch.setattr("resource.getrlimit", lambda _, there=there: (1024, there))
            assert descriptors(settings).level is level

    def test_a_clock_that_is_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._synchronised", lambda: True)
        assert clock(made()).level is OK
        monkeypatch.setattr("service.admin.host_checks._synchronised", lambda: False)
        assert clock(made()).level is WARN
        monkeypatch.setattr("time.time", lambda: 0.0)
        assert clock(made()).level is FAIL


class TestPlaces:
    def test_a_cache_of_ones_own(self, tmp_path: Path) -> None:
        assert cache(made(cache_dir=tmp_path / "new")).level is OK
        assert not (tmp_path / "new").exists(), "the doctor leaves nothing behind"
        assert cache(made(cache_dir=None)).level is WARN
        assert cache(made(cache_dir=None, compile="off")).level is OK

    def test_a_cache_that_others_may_write_to(self, tmp_path: Path) -> None:
        (tmp_path / "kernels").mkdir()
        (tmp_path / "kernels").chmod(0o777)
        assert cache(made(cache_dir=tmp_path)).level is WARN

    def test_a_state_folder(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        found = state(made(state=str(tmp_path)))
        assert found.level is OK, found
        assert not [*tmp_path.iterdir()]
        tmp_path.chmod(0o755)
        assert state(made(state=str(tmp_path))).advice.endswith(f"chmod 700 {tmp_path}")
        assert state(made(state=str(tmp_path / "new"))).level is OK
        assert not (tmp_path / "new").exists(), "the doctor leaves nothing behind"
        assert state(made(state="memory")).level is WARN

    def test_a_store_that_lets_one_object_be_made_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryObjects()
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        assert state(made(state="s3://bucket/x")).level is OK
        assert list(store.list("")) == [], "it leaves nothing behind"

    def test_a_store_that_lets_it_be_made_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryObjects()
        monkeypatch.setattr(store, "put_new", store.put)
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        found = state(made(state="s3://bucket/x"))
        assert found.level is FAIL
        assert found.says == "of 8 who made one object at s3://bucket/x at once, 8 were told that they did"

    def test_a_state_folder_that_cannot_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert state(made(state=str(tmp_path / "file" / "state"))).level is FAIL
        found = state(made(state=str(tmp_path)))
        assert found.level is FAIL, "a folder of somebody else's"
        assert "none of gradserve's" in found.says
        if Path("/proc/self").exists():
            assert state(made(state="/proc/self/gradserve")).level is FAIL

    def test_a_disk_that_is_nearly_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
        assert state(made(state=str(tmp_path))).level is WARN

    def test_a_file_of_keys(self, tmp_path: Path) -> None:
        file = tmp_path / "keys.json"
        assert keys(made(keys_file=file)).level is FAIL, "there is none"
        main(["keys", "add", "alice", "--keys-file", str(file)])
        assert keys(made(keys_file=file)) == (OK, f"callers need one of 1 keys of {file}", "")
        file.chmod(0o640)
        assert keys(made(keys_file=file)) == (WARN, f"{file} can be read by others", f"chmod 600 {file}")
        file.chmod(0o660)
        assert "chmod 600 mends that" in keys(made(keys_file=file)).says
        file.chmod(0o600)
        main(["keys", "revoke", "alice", "--keys-file", str(file)])
        assert keys(made(keys_file=file)).level is WARN, "nobody may call"
        file.write_text("no JSON")
        assert keys(made(keys_file=file)).level is FAIL

    def test_a_server_that_is_open_to_others(self) -> None:
        assert keys(made()).level is OK
        found = keys(made(host="0.0.0.0"))
        assert found.level is FAIL
        assert "lets other machines in" in found.says
        assert keys(made(host="0.0.0.0", insecure="on")).level is WARN
        assert keys(made(host="0.0.0.0", api_key="k" * 43)).level is OK

    def test_nothing_of_a_key_is_said(self) -> None:
        secret = "s" * 43
        assert secret not in "".join(keys(made(api_key=secret)))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")
class TestTls:
    def files(self, folder: Path, days: int) -> Settings:
        """A certificate for so many days, and its key."""
        cert, key, asked = folder / "cert.pem", folder / "key.pem", folder / "asked.pem"
        make_key = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout"
        sign = f"openssl x509 -req -days {days} -in"
        for command in ([*make_key.split(), key, "-out", asked], [*sign.split(), asked, "-signkey", key, "-out", cert]):
            subprocess.run(command, check=True, capture_output=True)
        key.chmod(0o600)
        return made(tls_cert=cert, tls_key=key)

    def test_how_long_it_is_good(self, tmp_path: Path) -> None:
        settings = self.files(tmp_path, 100)
        found = certificate(settings)
        assert found.level is OK
        assert found.says.endswith("is good for 100 days")
        assert settings.tls_key is not None
        settings.tls_key.chmod(0o644)
        assert certificate(settings).level is WARN

    def test_one_that_ends_soon(self, tmp_path: Path) -> None:
        assert certificate(self.files(tmp_path, 20)).level is WARN

    def test_one_that_is_over(self, tmp_path: Path) -> None:
        found = certificate(self.files(tmp_path, -1))
        assert found.level is FAIL
        assert found.says.endswith("has expired")

    def test_files_that_are_no_pair(self, tmp_path: Path) -> None:
        assert certificate(made(tls_cert=tmp_path / "no", tls_key=tmp_path / "no")).level is FAIL
        assert certificate(made()).level is OK


class TestTrial:
    @pytest.mark.slow
    def test_an_address(self) -> None:
        assert port(made(port=0)).level is OK
        with bind_socket("127.0.0.1", 0) as taken:
            taken.listen()
            found = port(made(port=taken.getsockname()[1]))
            taken.close()
        assert found.level is FAIL
        assert "Address already in use" in found.says
        assert port(made(host="no.such.host.invalid")).level is FAIL

    def test_a_port_of_the_metrics_that_is_taken(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            number = taken.getsockname()[1]
            diagnosis = port(made(port=0, metrics_port=number))
        assert diagnosis == (
            FAIL, f"cannot listen on 127.0.0.1 port {number} for metrics: Address already in use",
            "stop what has it, or name another --metrics-port",
        )  # fmt: skip

    @pytest.mark.slow
    def test_a_gradserve_that_is_there_already(self, server: RunningServer) -> None:
        assert port(made(port=server.address[1])) == (
            OK, f"a gradserve listens on 127.0.0.1 port {server.address[1]} already", "",
        )  # fmt: skip

    @pytest.mark.smoke
    @pytest.mark.slow
    def test_a_server_gives_a_gradient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = made(workers=1, api_key="k" * 43, cors_origins="https://a.example")
        monkeypatch.setenv("GRADSERVE_QUEUE", "read already, and not again")
        found = gradient(settings)
        assert found.level is OK, found

    @pytest.mark.slow
    def test_a_server_gives_one_beside_another_that_has_the_port_of_the_metrics(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            diagnosis = gradient(made(workers=1, metrics_port=taken.getsockname()[1]))
        assert diagnosis.level is OK, diagnosis

    @pytest.mark.slow
    def test_a_server_that_does_not_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.doctor._options", lambda _: ["--port", "nowhere"])
        found = gradient(made())
        assert found.level is FAIL
        assert found.says.startswith("a server does not start: setting --port")
