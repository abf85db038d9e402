"""Checks of `gradserve doctor` on machines, folders and files with faults."""

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
from service.admin.arguments import parse
from service.admin.diagnosis import Verdict
from service.admin.doctor import _TRIAL_SETTINGS, _options, gradient, port
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
from service.admin.place_checks import cache, certificate, cluster, extras, incidents, keys, state
from service.cli import main
from service.core import machine
from service.core.settings import SECRETS, Settings, flag_value
from service.store.places import SHARED_FORMAT, WHOLE_FORMAT, prepare_shared, write_format
from service.store.remote import open_remote
from service.web.listening import bind_socket
from service.web.server_state import max_descriptors
from service.workers.confinement import KernelSupport, kernel_support
from service.workers.incidents import Incidents
from service.workers.topology import typical_footprint
from tests.conftest import RunningServer
from tests.service.cluster.serving import SECRET
from tests.service.command_support import called
from tests.service.store.conftest import s3_place, s3_server
from tests.service.store.memory_objects import MemoryObjects

__all__ = ["s3_place", "s3_server"]

OK, WARN, FAIL = Verdict


def make_settings(**stated: object) -> Settings:
    return Settings(device="cpu", **stated)


def cluster_settings(**stated: object) -> Settings:
    """Settings of a server that others reach at 10.0.0.7."""
    defaults = {
        "host": "10.0.0.7", "cluster": "on", "cluster_address": "http://10.0.0.7:8000", "cluster_secret": SECRET,
        "state": "s3://bucket/folder",
    }  # fmt: skip
    return make_settings(**{**defaults, **stated})


class TestSoftware:
    def test_blas_and_gpu_checks_pass(self) -> None:
        assert blas(make_settings()).level is OK
        assert gpu(make_settings()).level is OK

    def test_kernel_is_compiled(self) -> None:
        pytest.importorskip("llvmlite")
        diagnosis = kernels(make_settings())
        assert diagnosis.level is OK, diagnosis
        assert "a kernel was compiled" in diagnosis.says

    def test_slow_compiler_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._COMPILE_SECONDS", 0.0)
        assert kernels(make_settings()).level is WARN

    def test_wrong_kernel_result_is_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("llvmlite")
        answers = iter(range(10**6))
        monkeypatch.setattr(
            "service.admin.host_checks._compute_value", lambda worker, real=_compute_value: real(worker) + next(answers)
        )
        assert kernels(make_settings()).level is FAIL

    def test_missing_gpu(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("engine.cuda.cupy_backend.is_available", lambda: False)
        assert gpu(Settings(device="cuda")).level is FAIL
        monkeypatch.setattr(machine, "visible_gpus", lambda: ("0",))
        diagnosis = gpu(Settings(device="auto"))
        assert diagnosis.level is WARN
        assert "gradserve[cuda12]" in diagnosis.advice

    def test_missing_card_library_is_reported_with_its_substitute(self, monkeypatch: pytest.MonkeyPatch) -> None:
        library = CardLibrary("cublasLt", "/lib/libcublasLt.so.13", "13.1.0", loaded=object())
        libraries = {"cublasLt": library, "nvJitLink": CardLibrary("nvJitLink", "/lib/j.so", "13.0", loaded=object())}
        missing = CardLibrary("cudnn", missing="it is not installed")
        monkeypatch.setattr("service.admin.host_checks.card_library", lambda name: libraries.get(name, missing))
        diagnosis = card_libraries(Settings(device="cuda"))
        assert diagnosis.level is WARN
        assert "cublasLt 13.1.0, /lib/libcublasLt.so.13" in diagnosis.says
        assert "cudnn was not found: it is not installed; instead: convolutions as a product" in diagnosis.says
        libraries["cudnn"] = CardLibrary("cudnn", "/lib/c.so", "9.28.1", loaded=object())
        assert card_libraries(Settings(device="cuda")).level is OK

    def test_card_libraries_are_checked_only_for_cuda(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks.card_library", pytest.fail)
        assert card_libraries(make_settings()).level is OK
        monkeypatch.setattr(machine, "visible_gpus", lambda: ())
        assert card_libraries(Settings(device="auto")).level is OK


class TestConfinement:
    def test_confinement_is_tried(self) -> None:
        diagnosis = confinement(make_settings())
        if kernel_support().missing:
            assert diagnosis.level is WARN
        else:
            tried = (
                "workers cannot open files, create sockets, start programs, signal the server: tested, with Landlock"
            )
            assert diagnosis == (OK, f"{tried} {kernel_support().landlock} and seccomp", "")

    def test_confinement_off_is_a_warning(self) -> None:
        assert confinement(make_settings(confine="off")).level is WARN

    def test_kernel_without_landlock_and_seccomp_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The trial process gets no confinement, so every attempt succeeds."""
        monkeypatch.setattr("service.admin.host_checks.kernel_support", lambda: KernelSupport(0, filters=False))
        monkeypatch.setattr("service.admin.host_checks.environment_of", lambda _: {})
        diagnosis = confinement(make_settings())
        assert diagnosis.level is WARN
        assert diagnosis.says == (
            "workers can open files, create sockets, start programs, signal the server: access to files is not "
            "restricted (no Landlock); system calls are not filtered (no seccomp)"
        )

    def test_state_readable_by_workers_is_a_failure(self) -> None:
        diagnosis = confinement(make_settings(state=str(Path(sys.prefix) / "lib" / "state")))
        assert diagnosis.level is FAIL
        assert diagnosis.says.startswith("--state is in ")


class TestIncidents:
    def test_no_incidents(self, tmp_path: Path) -> None:
        assert incidents(make_settings(cache_dir=tmp_path)).level is OK
        assert incidents(make_settings(cache_dir=None)).level is OK

    def test_last_incident_is_reported(self, tmp_path: Path) -> None:
        recorder = Incidents(tmp_path)
        recorder.note(1, signal.SIGKILL, LastWords("", "", ""))
        diagnosis = incidents(make_settings(cache_dir=tmp_path))
        assert diagnosis.level is WARN
        assert diagnosis.says.startswith(
            "1 worker was killed by a signal, the last one by SIGKILL, outside of a plan, on 2"
        )
        for _ in range(2):
            recorder.note(1, signal.SIGSEGV, LastWords("ab" * 32, "", "exp (node 1)"))
        diagnosis = incidents(make_settings(cache_dir=tmp_path))
        assert (
            "3 workers were killed by a signal, the last one by SIGSEGV, in plan abababababababab…, exp (node 1)"
            in (diagnosis.says)
        )
        assert diagnosis.says.endswith("; a plan runs without kernels because of it")


class TestResources:
    def test_more_workers_than_processors_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "cpus", lambda: 2)
        assert processors(make_settings(workers=2)).level is OK
        assert processors(make_settings(workers=3)) == (
            WARN,
            f"3 workers can use 2 of {os.cpu_count()} CPUs",
            "more workers than CPUs slow each other down: set --workers 2",
        )

    @pytest.mark.parametrize(
        ("max_bytes", "held", "level"), [(1, 1, OK), (3, 2, WARN), (2, 4, WARN), (5, 1, FAIL)], ids=str
    )
    def test_memory_budgets(self, max_bytes: int, held: int, level: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "memory_bytes", lambda: 8 << 30)
        monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda: 8 << 30)
        others = {"plan_cache_bytes": 1 << 30, "max_tensor_bytes": 2 << 30}
        settings = make_settings(workers=2, max_bytes=max_bytes << 30, held_bytes=held << 30, **others)
        assert memory(settings).level is level

    def test_memory_used_by_other_programs_is_a_warning(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda: 1 << 20)
        diagnosis = memory(make_settings())
        assert diagnosis.level is WARN
        assert "stop other programs" in diagnosis.advice

    def test_default_budgets_fit_any_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for size in (1 << 29, 1 << 31, 1 << 38):
            monkeypatch.setattr(machine, "memory_bytes", lambda size=size: size)
            monkeypatch.setattr("service.admin.host_checks._free_bytes", lambda size=size: size)
            assert memory(make_settings(workers=2)).level is OK

    @pytest.mark.parametrize(
        ("whole", "level", "advice"),
        [
            (1 << 40, OK, ""),
            (2 << 30, WARN, "this may exceed the memory: lower --plan-cache-bytes"),
            (1 << 28, WARN, "this exceeds the memory: lower --workers"),
        ],
    )
    def test_expected_size_of_caches(
        self, whole: int, level: Verdict, advice: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = make_settings(workers=2, plan_cache_bytes=2 << 30, max_graph_bytes=1 << 28)
        monkeypatch.setattr(machine, "memory_bytes", lambda: whole)
        diagnosis = caches(settings)
        assert (diagnosis.level, diagnosis.advice) == (level, advice)
        usual = typical_footprint(settings)
        parts = f"front process {usual.front >> 20} MiB, 4 workers {usual.worker >> 20} MiB"
        assert parts in diagnosis.says

    def test_descriptor_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
        assert descriptors(make_settings(max_connections=3000, max_tensors=500)).level is OK
        assert descriptors(make_settings(max_connections=4096, max_tensors=0)).level is WARN
        assert descriptors(make_settings(max_connections=3000)).level is WARN, "a large tensor has one, too"

    def test_descriptor_limit_matches_the_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = make_settings(max_connections=1000, max_tensors=2000)
        required = max_descriptors(settings)
        for there, level in (required, OK), (required - 1, WARN):
            monkeypatch.setattr("resource.getrlimit", lambda _, there=there: (1024, there))
            assert descriptors(settings).level is level

    def test_clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.host_checks._synchronised", lambda: True)
        assert clock(make_settings()).level is OK
        monkeypatch.setattr("service.admin.host_checks._synchronised", lambda: False)
        assert clock(make_settings()).level is WARN
        monkeypatch.setattr("time.time", lambda: 0.0)
        assert clock(make_settings()).level is FAIL


class TestPlaces:
    def test_cache_folder(self, tmp_path: Path) -> None:
        assert cache(make_settings(cache_dir=tmp_path / "new")).level is OK
        assert not (tmp_path / "new").exists(), "the doctor leaves nothing behind"
        assert cache(make_settings(cache_dir=None)).level is WARN
        assert cache(make_settings(cache_dir=None, compile="off")).level is OK

    def test_cache_writable_by_others_is_a_warning(self, tmp_path: Path) -> None:
        (tmp_path / "kernels").mkdir()
        (tmp_path / "kernels").chmod(0o777)
        assert cache(make_settings(cache_dir=tmp_path)).level is WARN

    def test_state_folder(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o700)
        diagnosis = state(make_settings(state=str(tmp_path)))
        assert diagnosis.level is OK, diagnosis
        assert not [*tmp_path.iterdir()]
        tmp_path.chmod(0o755)
        assert state(make_settings(state=str(tmp_path))).advice.endswith(f"chmod 700 {tmp_path}")
        assert state(make_settings(state=str(tmp_path / "new"))).level is OK
        assert not (tmp_path / "new").exists(), "the doctor leaves nothing behind"
        assert state(make_settings(state="memory")).level is WARN

    def test_store_with_atomic_creation(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryObjects()
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        assert state(make_settings(state="s3://bucket/x")).level is OK
        assert list(store.list("")) == [], "it leaves nothing behind"

    def test_state_with_another_number_of_shards_is_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryObjects()
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        shared = make_settings(state="s3://bucket/x", cluster="on", shards=64)
        assert state(shared).level is OK
        assert list(store.list("")) == [], "the doctor records no number"
        prepare_shared(store, "the state", 16)
        diagnosis = state(shared)
        assert diagnosis.level is FAIL
        assert "the state at s3://bucket/x has 16 shards, but --shards is 64" in diagnosis.says

    def test_store_without_atomic_creation_is_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = MemoryObjects()
        monkeypatch.setattr(store, "put_new", store.put)
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        diagnosis = state(make_settings(state="s3://bucket/x"))
        assert diagnosis.level is FAIL
        assert (
            diagnosis.says == "8 clients created one object at s3://bucket/x at the same time, and 8 of them succeeded"
        )

    @pytest.mark.parametrize(("clustered", "form"), [("off", WHOLE_FORMAT), ("on", SHARED_FORMAT)])
    def test_state_of_the_other_format_is_a_failure(
        self, clustered: str, form: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = MemoryObjects()
        monkeypatch.setattr("service.store.places.open_remote", lambda place: store)
        settings = cluster_settings(cluster=clustered)
        write_format(store, form)
        assert state(settings).level is OK
        write_format(other := MemoryObjects(), SHARED_FORMAT if form == WHOLE_FORMAT else WHOLE_FORMAT)
        monkeypatch.setattr("service.store.places.open_remote", lambda place: other)
        diagnosis = state(settings)
        assert diagnosis.level is FAIL
        assert "gradserve backup and gradserve restore convert it" in diagnosis.says

    def test_state_folder_that_others_may_write_to_is_a_failure(self, tmp_path: Path) -> None:
        """A server does not start on it."""
        tmp_path.chmod(0o770)
        diagnosis = state(make_settings(state=str(tmp_path)))
        assert diagnosis.level is FAIL
        assert f"other users can write to {tmp_path}" in diagnosis.says
        tmp_path.chmod(0o700)
        (tmp_path / "commits").mkdir()
        (tmp_path / "commits").chmod(0o777)
        (tmp_path / "FORMAT").write_bytes(WHOLE_FORMAT)
        diagnosis = state(make_settings(state=str(tmp_path)))
        assert diagnosis.level is FAIL
        assert f"other users can write to {tmp_path / 'commits'}" in diagnosis.says

    def test_unusable_state_folder_is_a_failure(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        assert state(make_settings(state=str(tmp_path / "file" / "state"))).level is FAIL
        diagnosis = state(make_settings(state=str(tmp_path)))
        assert diagnosis.level is FAIL, "a folder of somebody else's"
        assert "was not written by gradserve" in diagnosis.says
        if Path("/proc/self").exists():
            assert state(make_settings(state="/proc/self/gradserve")).level is FAIL

    def test_nearly_full_disk_is_a_warning(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
        assert state(make_settings(state=str(tmp_path))).level is WARN

    def test_key_file(self, tmp_path: Path) -> None:
        file = tmp_path / "keys.json"
        assert keys(make_settings(keys_file=file)).level is FAIL, "there is none"
        main(["keys", "add", "alice", "--keys-file", str(file)])
        assert keys(make_settings(keys_file=file)) == (OK, f"clients need a key of {file}, which has 1", "")
        file.chmod(0o640)
        assert keys(make_settings(keys_file=file)) == (WARN, f"other users can read {file}", f"chmod 600 {file}")
        file.chmod(0o660)
        assert "run chmod 600" in keys(make_settings(keys_file=file)).says
        file.chmod(0o600)
        main(["keys", "revoke", "alice", "--keys-file", str(file)])
        assert keys(make_settings(keys_file=file)).level is WARN, "nobody may call"
        file.write_text("no JSON")
        assert keys(make_settings(keys_file=file)).level is FAIL

    def test_server_open_to_other_machines(self) -> None:
        assert keys(make_settings()).level is OK
        diagnosis = keys(make_settings(host="0.0.0.0"))
        assert diagnosis.level is FAIL
        assert "accepts connections from other machines" in diagnosis.says
        assert keys(make_settings(host="0.0.0.0", insecure="on")).level is WARN
        assert keys(make_settings(host="0.0.0.0", api_key="k" * 43)).level is OK

    def test_unknown_host_is_left_to_the_check_of_the_port(self) -> None:
        assert keys(make_settings(host="no.such.host.invalid")).level is WARN

    def test_diagnosis_does_not_show_the_key(self) -> None:
        secret = "s" * 43
        assert secret not in "".join(keys(make_settings(api_key=secret)))


class TestCluster:
    def test_single_server(self) -> None:
        assert cluster(make_settings()).level is OK

    def test_complete_settings(self) -> None:
        assert cluster(cluster_settings()) == (OK, "other servers reach this one at http://10.0.0.7:8000", "")

    @pytest.mark.parametrize(
        ("name", "value"),
        [("state", "memory"), ("state", "/var/lib/gradserve"), ("cluster_address", None), ("cluster_secret", None)],
    )
    def test_settings_that_serve_refuses(self, name: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
        """The doctor says what `serve` says."""
        monkeypatch.delenv("GRADSERVE_CLUSTER_SECRET", raising=False)
        settings = cluster_settings(**{name: value})
        diagnosis = cluster(settings)
        assert diagnosis.level is FAIL
        options = [
            "--cluster",
            "on",
            "--state",
            settings.state,
            "--cluster-address",
            flag_value(settings.cluster_address),
        ]
        secret = {} if settings.cluster_secret is None else {"GRADSERVE_CLUSTER_SECRET": SECRET}
        assert called("serve", "--port", "0", *options, **secret).stderr == f"gradserve: {diagnosis.says}\n"

    @pytest.mark.parametrize(
        ("stated", "says"),
        [
            ({"host": "127.0.0.1"}, "--host 127.0.0.1 accepts connections only from this machine"),
            ({"host": "::1"}, "--host ::1 accepts connections only from this machine"),
            ({"cluster_address": "http://localhost:8000"}, "only servers on this machine can reach"),
            ({"tls_cert": "cert.pem", "tls_key": "key.pem"}, "servers ask each other in plain HTTP"),
        ],
    )
    def test_address_that_others_cannot_use_is_a_warning(self, stated: dict[str, object], says: str) -> None:
        diagnosis = cluster(cluster_settings(**stated))
        assert diagnosis.level is WARN
        assert says in diagnosis.says

    def test_diagnosis_does_not_show_the_secret(self) -> None:
        assert SECRET not in "".join(cluster(cluster_settings()))

    def test_shared_place(self, s3_place: str) -> None:
        """The doctor becomes the owner of nothing: not even the format is written."""
        settings = cluster_settings(state=s3_place)
        assert state(settings) == (OK, f"tensors and graphs are stored at {s3_place}", "")
        assert list(open_remote(s3_place).list("")) == []
        write_format(open_remote(s3_place), SHARED_FORMAT)
        assert state(settings).level is OK
        assert list(open_remote(s3_place).list("")) == ["FORMAT"]

    def test_unreachable_place_is_a_failure(self, s3_place: str) -> None:
        diagnosis = state(cluster_settings(state="s3://no-such-bucket/of/gradserve"))
        assert diagnosis.level is FAIL
        assert diagnosis.says.startswith("cannot use the state at s3://no-such-bucket/of/gradserve: ")


class TestExtras:
    @pytest.mark.parametrize(
        ("stated", "module", "extra"),
        [
            ({"trace_endpoint": "http://collector:4318"}, "opentelemetry", "otel"),
            ({"cluster": "on"}, "aiohttp", "cluster"),
            ({"ingress": "http://10.0.0.9:8000"}, "aiohttp", "cluster"),
        ],
        ids=lambda value: value if isinstance(value, str) else "-".join(value),
    )
    def test_missing_extra_is_a_failure(
        self, stated: dict[str, object], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if name.startswith(("service.cluster", "service.observe.tracing"))]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, module, None)
        diagnosis = extras(make_settings(**stated))
        assert diagnosis.level is FAIL
        assert f"pip install 'gradserve[{extra}]'" in diagnosis.says
        assert extras(make_settings()).level is OK

    def test_installed_extras(self) -> None:
        pytest.importorskip("aiohttp")
        assert extras(cluster_settings(ingress="http://10.0.0.9:8000")).level is OK


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")
class TestTls:
    def files(self, folder: Path, days: int) -> Settings:
        """Create a certificate that is valid for `days` days, and its key."""
        cert, key, signing_request = folder / "cert.pem", folder / "key.pem", folder / "asked.pem"
        make_key = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -keyout"
        sign = f"openssl x509 -req -days {days} -in"
        for command in (
            [*make_key.split(), key, "-out", signing_request],
            [*sign.split(), signing_request, "-signkey", key, "-out", cert],
        ):
            subprocess.run(command, check=True, capture_output=True)
        key.chmod(0o600)
        return make_settings(tls_cert=cert, tls_key=key)

    def test_validity_of_a_certificate(self, tmp_path: Path) -> None:
        settings = self.files(tmp_path, 100)
        diagnosis = certificate(settings)
        assert diagnosis.level is OK
        assert diagnosis.says.endswith("is valid for 100 days")
        assert settings.tls_key is not None
        settings.tls_key.chmod(0o644)
        assert certificate(settings).level is WARN

    def test_certificate_that_expires_soon_is_a_warning(self, tmp_path: Path) -> None:
        assert certificate(self.files(tmp_path, 20)).level is WARN

    def test_expired_certificate_is_a_failure(self, tmp_path: Path) -> None:
        diagnosis = certificate(self.files(tmp_path, -1))
        assert diagnosis.level is FAIL
        assert diagnosis.says.endswith("has expired")

    def test_missing_certificate_files_are_a_failure(self, tmp_path: Path) -> None:
        assert certificate(make_settings(tls_cert=tmp_path / "no", tls_key=tmp_path / "no")).level is FAIL
        assert certificate(make_settings()).level is OK


class TestTrial:
    @pytest.mark.slow
    def test_listening_address(self) -> None:
        assert port(make_settings(port=0)).level is OK
        with bind_socket("127.0.0.1", 0) as taken:
            taken.listen()
            diagnosis = port(make_settings(port=taken.getsockname()[1]))
            taken.close()
        assert diagnosis.level is FAIL
        assert "is already in use" in diagnosis.says
        assert port(make_settings(host="no.such.host.invalid")).level is FAIL

    def test_metrics_port_in_use_is_a_failure(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            number = taken.getsockname()[1]
            diagnosis = port(make_settings(port=0, metrics_port=number))
        assert diagnosis == (
            FAIL, f"cannot listen on port {number} on 127.0.0.1 for metrics: Address already in use",
            "stop the process that uses it, or set another --metrics-port",
        )  # fmt: skip

    @pytest.mark.slow
    def test_running_gradserve_on_the_port_is_ok(self, server: RunningServer) -> None:
        assert port(make_settings(port=server.address[1])) == (
            OK, f"a gradserve server already listens on port {server.address[1]} on 127.0.0.1", "",
        )  # fmt: skip

    @pytest.mark.smoke
    @pytest.mark.slow
    def test_trial_server_computes_a_gradient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings = make_settings(workers=1, api_key="k" * 43, cors_origins="https://a.example")
        monkeypatch.setenv("GRADSERVE_QUEUE", "read already, and not again")
        diagnosis = gradient(settings)
        assert diagnosis.level is OK, diagnosis

    @pytest.mark.slow
    def test_trial_server_of_a_cluster_computes_a_gradient(self) -> None:
        """It has no state, so it owns no shard, and needs no other server."""
        diagnosis = gradient(cluster_settings(workers=1))
        assert diagnosis.level is OK, diagnosis

    def test_options_of_the_trial_server_give_the_same_settings(self) -> None:
        """Flags must accept what the doctor passes: a size without a short form, an empty list, an absent folder."""
        stated = {
            "max_bytes": 123_456_789, "facades": "", "cors_origins": "", "allowed_hosts": "a.example,b.example",
            "ingress": "", "least_precision": "tf32", "metrics_port": "none", "cache_dir": "none", "queue": 7,
        }  # fmt: skip
        settings = make_settings(**stated)
        words = _options(settings)
        options = parse(["serve", *words], "0")
        options.pop("command")
        read = Settings(**{name: value for name, value in options.items() if value is not None})
        for name in stated.keys() - _TRIAL_SETTINGS.keys():
            assert getattr(read, name) == getattr(settings, name), name

    @pytest.mark.parametrize("name", [name for name in Settings.model_fields if name not in SECRETS])
    def test_every_setting_can_be_passed_as_a_flag(self, name: str) -> None:
        value = getattr(Settings(), name)
        assert getattr(Settings(**{name: flag_value(value)}), name) == value

    @pytest.mark.slow
    def test_trial_server_works_if_the_metrics_port_is_in_use(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            diagnosis = gradient(make_settings(workers=1, metrics_port=taken.getsockname()[1]))
        assert diagnosis.level is OK, diagnosis

    @pytest.mark.slow
    def test_trial_server_that_does_not_start_is_a_failure(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("service.admin.doctor._options", lambda _: ["--port", "nowhere"])
        diagnosis = gradient(make_settings())
        assert diagnosis.level is FAIL
        assert diagnosis.says.startswith("a test server does not start: --port")
