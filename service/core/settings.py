"""Every setting of the server: default, limits and description.

A setting is given as a flag (`--timeout-ms 5000`) or in the environment (`GRADSERVE_TIMEOUT_MS=5000`); a flag wins.
Sizes may have units (`--max-bytes 4GiB`, or 4G for the same).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from engine import printable
from engine.ir.run_report import IEEE, PRECISIONS, Precision
from service.core import machine
from service.core.budget import (
    ANSWER_BYTES,
    FRONT_LIMIT,
    GRAPH_BYTES,
    MODEL_BYTES,
    THREAD_BYTES,
    WORKER_BYTES,
    WORKER_CACHE_BYTES,
    WORKER_MARGIN,
    WorkerBudget,
    WorkerCounts,
    worker_budget,
)
from service.core.spelling import hint

_DECIMAL: Final = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY: Final = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
#: a single letter means a power of 1024, as in Docker and systemd
_LETTERS: Final = {name[0]: factor for name, factor in _BINARY.items()}
_UNITS: Final = {name.upper(): factor for name, factor in (_DECIMAL | _BINARY | _LETTERS).items()}
_WITH_UNIT: Final = re.compile(r"([0-9]{1,30})\s*([A-Za-z]+)")
_LETTER: Final = re.compile(r"[A-Za-z]")
_READABLE: Final = 10_000  # a larger number of units is as hard to read as the number of bytes


def parse_size(value: object) -> object:
    """Convert a text with a unit, in any case, to bytes; return other values unchanged. Raises PydanticCustomError."""
    if not isinstance(value, str) or not _LETTER.search(value):
        return value
    match = _WITH_UNIT.fullmatch(value.strip())
    factor = match and _UNITS.get(match[2].upper())
    if not match or not factor:
        units = ", ".join(_DECIMAL | _BINARY | _LETTERS)
        raise PydanticCustomError(
            "size",
            "a size is a whole number of bytes, or one with a unit, as in 4GiB (units: {units})",
            {"units": units},
        )
    return int(match[1]) * factor


def readable(size: int) -> str:
    """Format a size exactly, in the largest binary unit that divides it; add a rounded value if that is long."""
    exact_units = [(size // factor, name) for name, factor in _BINARY.items() if size and size % factor == 0]
    count, unit = exact_units[-1] if exact_units else (size, "")
    if count < _READABLE:
        return f"{count}{unit}"
    unit, factor = [(name, factor) for name, factor in _BINARY.items() if factor <= size][-1]
    return f"{size}, about {size / factor:.1f}{unit}"


#: marker of a setting that is a size, looked up in the metadata of its field
SIZE: Final = BeforeValidator(parse_size)
Size = Annotated[int, SIZE]


PREFIX: Final = "GRADSERVE_"
#: prefixes of the environment variables for the project's own tests
TEST_PREFIXES: Final = (f"{PREFIX}TEST_", f"{PREFIX}UPDATE_")
#: removed settings and why each was removed: for one release, a server that gets one still starts and logs a warning
REMOVED: Final = {
    "coalesce": "coalescing was removed",
    "http": "`gradserve serve` no longer runs uvicorn; run `uvicorn service.asgi:app` instead",
}
#: value of `state` for a state that is lost when the server ends
NO_STATE: Final = "memory"
#: most shards of a state that servers share
MAX_SHARDS: Final = 4096
#: wildcard for any name or origin
WILDCARD: Final = "*"
#: value for "no folder"
NO_VALUE: Final = "none"
#: settings that have no flag, because other users can read flags in the process list, and that are never printed
SECRETS: Final = frozenset({"api_key", "cluster_secret"})
#: names of variables with addresses and credentials of external services
_FRONT_ONLY: Final = re.compile(r"^(AWS|AZURE|GOOGLE|OTEL)_|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|PRIVATE|API_?KEY")
#: variables that Kubernetes sets for a Service: https://kubernetes.io/docs/concepts/services-networking/service/
_SERVICE_LINK: Final = re.compile(
    r"GRADSERVE(?:_[A-Z0-9_]+)??_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?"
    r"|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)
#: log line for ignored Kubernetes variables
IGNORED_LINKS: Final = "ignored variables that Kubernetes sets for a Service of this name: %s"
_LINKED_PORT: Final = re.compile(r"_(?:SERVICE|[0-9]+_(?:TCP|UDP|SCTP))_PORT$")
#: a host name, an IPv4 address, an IPv6 address with or without brackets, or the wildcard
_HOST: Final = re.compile(r"\*|[^\s:/@*\[\]]+|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:.]+")
#: a key made by a person or another program: long enough not to be guessed, and valid in a header
_KEY: Final = re.compile(r"[A-Za-z0-9._~+/-]{22,512}=*")
#: shared secret of the servers of a cluster, valid in a header
_CLUSTER_SECRET: Final = re.compile(r"[\x21-\x7e]{32,512}")
#: memory budget of an execution if the machine has hardly any memory
_MIN_BYTES: Final = 64 << 20


def _default_max_bytes(validated: dict[str, Any]) -> int:
    """Return half the memory divided by the workers, or less so that the limits of all processes fit into memory."""
    workers = validated.get("workers", 1)
    processes = sum(WorkerCounts(workers))
    caches = worker_budget(_default_plan_cache_bytes() // processes, compiles=True).whole
    # Of the memory that the front leaves, each worker process gets an equal share, less its caches and its base size.
    share = (machine.memory_bytes() - FRONT_LIMIT) // processes - caches
    base = WORKER_BYTES + WORKER_CACHE_BYTES + WORKER_MARGIN + machine.cpus_per_worker(workers) * THREAD_BYTES
    return int(max(_MIN_BYTES, min(machine.memory_bytes() // (2 * workers), share - base)))


def _default_plan_cache_bytes() -> int:
    return int(min(1 << 30, machine.memory_bytes() // 8))


def _default_worker_bytes(validated: dict[str, Any]) -> int:
    return int(validated.get("max_bytes", 0) + _default_plan_cache_bytes())


def _default_connections_per_client(validated: dict[str, Any]) -> int:
    return max(1, int(validated.get("max_connections", 0)) // 8)


def _default_allowed_hosts(validated: dict[str, Any]) -> tuple[str, ...]:
    return (WILDCARD,) if validated.get("insecure") == "on" else ()


#: third-party protocols that the server can speak
FacadeName = Literal["umbridge", "openinference", "tesseract"]


class Settings(BaseModel):
    """Settings of the server. A setting that is not passed comes from the environment, or else has its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    host: str = Field("127.0.0.1", min_length=1, description="address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 picks a free port and prints it")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="device that computes: cpu, cuda, or auto (cuda if a GPU can be used)"
    )
    workers: int = Field(
        default_factory=lambda: min(4, machine.cpus()),
        ge=1,
        le=256,
        description="number of requests that compute at the same time",
    )
    queue: int = Field(
        1024, ge=0, description="number of requests that may wait for a worker; one more gets 503 queue_full"
    )
    held_bytes: Size = Field(
        default_factory=lambda: machine.memory_bytes() // 4,
        ge=1,
        description="total size of large request bodies and responses in memory; more get 503 queue_full. Default: a "
        "quarter of the memory",
    )
    timeout_ms: int = Field(
        30_000, ge=1, le=86_400_000, description="timeout of a request, in milliseconds; ?timeout_ms= can lower it"
    )
    max_nodes: int = Field(
        100_000, ge=1, description="maximum number of nodes of a graph as sent, including those of its functions"
    )
    max_expanded_nodes: int = Field(
        1_000_000,
        ge=1,
        description="maximum number of nodes, including those of the gradients and of each use of a function",
    )
    max_depth: int = Field(16, ge=1, description="maximum depth of functions that run within functions")
    max_expansion: int = Field(
        50,
        ge=1,
        description="maximum number of nodes that gradients may add for each node sent, if they add more than 30,000",
    )
    max_rank: int = Field(32, ge=1, le=64, description="maximum number of axes of a tensor")
    max_body_bytes: Size = Field(64 << 20, ge=1, description="maximum size of a JSON request body")
    max_binary_bytes: Size = Field(1 << 30, ge=1, description="maximum size of a safetensors request body")
    max_header_bytes: Size = Field(
        16 << 10, ge=1024, description="maximum size of the request line and the headers together"
    )
    json_depth: int = Field(100, ge=8, le=190, description="maximum nesting depth of a JSON body")
    max_bytes: Size = Field(
        default_factory=_default_max_bytes,
        ge=1,
        description="maximum memory of one execution. Default: half the memory, divided by the workers, or less if the "
        "limits of all processes would not fit into memory",
    )
    max_flops: int = Field(
        default_factory=lambda: 10**12 * machine.cpus(),
        ge=1,
        description="maximum number of floating-point operations of one execution. Default: 10^12 for each CPU",
    )
    max_response_bytes: Size = Field(256 << 20, ge=1, description="maximum size of a response")
    plan_cache: int = Field(
        256, ge=1, description="maximum number of cached plans, for requests with the same graph and shapes"
    )
    plan_cache_bytes: Size = Field(
        default_factory=_default_plan_cache_bytes,
        ge=0,
        description="total size of cached plans. A quarter is for the memory of plans that are ready to run again, and "
        "an eighth for parsed graphs. A plan that alone exceeds the limit is not cached. Default: 1GiB, or "
        "an eighth of the memory if that is less",
    )
    device_bytes: Size = Field(
        0, ge=0, description="maximum GPU memory that the worker of a GPU uses; 0: nine tenths of it"
    )
    device_workspace: Size = Field(
        64 << 20,
        ge=0,
        description="part of the GPU memory of a worker that is the workspace of kernels and libraries, allocated at "
        "startup; at most a quarter of --device-bytes. Operations that would need more are computed in "
        "another way",
    )
    worker_jobs: int = Field(
        0, ge=0, description="number of requests after which a worker process is replaced; 0: never"
    )
    worker_age: int = Field(0, ge=0, description="seconds after which a worker process is replaced; 0: never")
    worker_bytes: Size = Field(
        default_factory=_default_worker_bytes,
        ge=0,
        description="private memory at which a worker process is replaced; 0: never. Default: --max-bytes plus the "
        "default of --plan-cache-bytes",
    )
    max_graphs: int = Field(
        10_000, ge=0, description="maximum number of registered graphs; one more gets 507 store_full"
    )
    max_graph_bytes: Size = Field(GRAPH_BYTES, ge=0, description="total size of the registered graphs")
    max_tensors: int = Field(
        10_000, ge=0, description="maximum number of resident tensors; one more gets 507 store_full"
    )
    max_tensor_bytes: Size = Field(
        default_factory=lambda: machine.memory_bytes() // 4,
        ge=0,
        description="total size of the resident tensors, in memory. Default: a quarter of the memory",
    )
    max_models: int = Field(1000, ge=0, description="maximum number of models; one more gets 507 store_full")
    max_model_bytes: Size = Field(MODEL_BYTES, ge=0, description="total size of the models")
    write_behind_ms: int = Field(
        1000,
        ge=1,
        le=3_600_000,
        description="maximum delay in milliseconds before tensors stored with durable: false are on disk",
    )
    idempotency_seconds: int = Field(
        600,
        ge=1,
        le=86_400,
        description="seconds for which the server replays the response to a call with an Idempotency-Key",
    )
    max_answers: int = Field(
        100_000,
        ge=0,
        description="maximum number of stored responses to calls with an Idempotency-Key; one more gets 507 store_full",
    )
    max_answer_bytes: Size = Field(
        ANSWER_BYTES, ge=0, description="total size of stored responses to calls with an Idempotency-Key"
    )
    namespace_share: int = Field(
        25,
        ge=1,
        le=100,
        description="percentage that one namespace may use of each limit on stored graphs, tensors, models and "
        "responses, if the server requires keys and no key of the namespace sets another limit",
    )
    compile: Literal["on", "off"] = Field(
        "on", description="whether plans that run again are compiled to machine code; off: NumPy computes everything"
    )
    determinism: Literal["fast", "bitwise"] = Field(
        "fast",
        description="fast: the last bits of the results of a plan may change when its compiled kernels become "
        "available, at most twice; bitwise: they never change, and the first request waits for the compiler",
    )
    precision: Precision = Field(
        IEEE,
        description="how products and convolutions may read float32 on a GPU, for requests that do not set it: float32,"
        " tf32x3, tf32 or bfloat16, from the most to the least exact. A CPU always computes in float32",
    )
    least_precision: Precision = Field(
        PRECISIONS[-1], description="least exact precision that a request may ask for; a less exact one gets 422"
    )
    cache_dir: Path | None = Field(
        default_factory=machine.cache_folder,
        description="folder for compiled kernels; none: only in memory. Default: gradserve in $XDG_CACHE_HOME or "
        "~/.cache, or none if there is no writable home directory",
    )
    state: str = Field(
        default_factory=lambda: str(machine.state_folder() or NO_STATE),
        description="where graphs, tensors and responses are stored: a folder, s3://BUCKET/FOLDER, gs://… or az://…; "
        "memory: they are lost when the server stops. Default: gradserve in $XDG_STATE_HOME or "
        "~/.local/state, or memory if there is no writable home directory",
    )
    lease_ms: int = Field(
        1000,
        ge=0,
        le=60_000,
        description="for state in object storage: milliseconds for which the server may respond from memory after it "
        "has checked the store; 0: it checks for every response. A starting server waits 1.2 times this "
        "long before it serves",
    )
    cluster: Literal["on", "off"] = Field(
        "off",
        description="on: servers share a state in object storage; each owns a part of it and asks the others for the "
        "rest",
    )
    cluster_address: str | None = Field(
        None, description="address at which the other servers reach this one, as http://HOST:PORT; none: they do not"
    )
    shards: int = Field(
        16,
        ge=1,
        le=MAX_SHARDS,
        description="number of parts of a state that servers share with --cluster on. The first server writes it into "
        "the state; a server with another number does not start",
    )
    ingress: str | None = Field(
        None,
        description="address of the ingress in front of this server and others, as http://HOST:PORT, which gets the "
        "pieces of long sums; none: no ingress",
    )
    cluster_secret: SecretStr | None = Field(
        None,
        description="secret by which the servers of a cluster authenticate each other; at least 32 characters; there "
        "is no flag for it",
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="web origins whose pages may call the server from a browser, separated by commas; *: all"
    )
    facades: tuple[FacadeName, ...] = Field(
        (),
        description="protocols to serve in addition to /v1, separated by commas: umbridge, openinference, tesseract",
    )
    header_timeout: float = Field(
        8.0, gt=0, le=3600, allow_inf_nan=False, description="seconds for the head of a request to arrive"
    )
    body_timeout: float = Field(
        8.0, gt=0, le=3600, allow_inf_nan=False, description="seconds without a byte of the body before 408"
    )
    send_timeout: float = Field(
        20.0,
        gt=0,
        le=3600,
        allow_inf_nan=False,
        description="seconds in which the client reads nothing of a response before the connection is closed",
    )
    min_rate: int = Field(240, ge=1, description="minimum average rate of a request body, in bytes per second")
    min_send_rate: int = Field(
        4096, ge=1, description="minimum average rate at which a client reads a response, in bytes per second"
    )
    max_chunks: int = Field(262_144, ge=1, description="maximum number of chunks of a chunked request body")
    max_connections: int = Field(
        4096,
        ge=1,
        description="maximum number of connections; if none of them is idle, one more gets only health checks",
    )
    max_connections_per_client: int = Field(
        default_factory=_default_connections_per_client,
        ge=1,
        description="maximum number of connections from one address. Default: an eighth of --max-connections",
    )
    drain_bytes: Size = Field(
        16 << 20,
        ge=0,
        description="bytes that the server reads and drops after it rejects a request early, so that the client sees "
        "the response",
    )
    keep_alive: int = Field(75, ge=1, description="seconds for which an idle connection stays open")
    shutdown_grace: int = Field(30, ge=1, description="seconds for running requests after SIGTERM")
    tls_cert: Path | None = Field(None, description="file with the certificate and its chain, in PEM; none: plain HTTP")
    tls_key: Path | None = Field(None, description="file with the private key of the certificate, in PEM")
    keys_file: Path | None = Field(
        None, description="file of the API keys that clients need, written by `gradserve keys`; none: no keys"
    )
    api_key: SecretStr | None = Field(
        None,
        description="one API key with all scopes, for a container; at least 22 characters; there is no flag for it",
    )
    insecure: Literal["on", "off"] = Field(
        "off", description="whether a server without keys may listen where other machines can reach it"
    )
    confine: Literal["on", "off"] = Field(
        "on",
        description="whether workers run in a sandbox: the kernel denies them sockets, other processes, and files other"
        " than libraries and compiled kernels",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default_factory=_default_allowed_hosts,
        description="names and addresses in the Host header that a server without keys accepts in addition to those of "
        "localhost, separated by commas; *: all. Default: * with --insecure on",
    )
    playground: Literal["on", "off"] = Field(
        "on",
        description="whether `/` is the playground, a page to write, draw and run requests; off: it redirects to /docs",
    )
    metrics: Literal["keys", "open"] = Field(
        "keys",
        description="who may read /metrics if the server requires keys: keys (those with the scope admin), or everybody"
        " (open)",
    )
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="port of a separate listener for /metrics and /health/, in plain HTTP and without keys; /metrics is"
        " then not on --port. 0 picks a free port and prints it. none: /metrics is on --port",
    )
    metrics_host: str = Field("127.0.0.1", min_length=1, description="address that --metrics-port listens on")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="lowest level to log: debug, info, warning or error"
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="format of the log: text, or json with one object per line"
    )
    trace_endpoint: str | None = Field(
        None,
        description="URL of an OpenTelemetry collector that gets traces of requests, as OTLP over HTTP; without a path,"
        " /v1/traces is added. The OTEL_* variables configure the rest. none: no traces",
    )

    def __init__(self, **values: Any) -> None:
        variables = {name.upper(): value for name, value in os.environ.items()}  # names are case-insensitive
        fields = {name: variables[variable(name)] for name in Settings.model_fields if variable(name) in variables}
        for name in SECRETS - values.keys():
            if path := variables.get(_file_variable(name)):
                if name in fields:
                    raise RuntimeError(f"set {variable(name)} or {_file_variable(name)}, not both")
                fields[name] = _read_secret(name, path)
        super().__init__(**fields | values)

    @property
    def requires_keys(self) -> bool:
        """Whether requests need a key."""
        return self.keys_file is not None or self.api_key is not None

    @field_validator("least_precision")
    @classmethod
    def _check_default_precision(cls, value: Precision, info: ValidationInfo) -> Precision:
        default_precision = info.data.get("precision", IEEE)
        if PRECISIONS.index(default_precision) > PRECISIONS.index(value):
            raise ValueError(f"the default for requests, {flag('precision')} {default_precision}, is less exact")
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_HOST.fullmatch, value)):
            raise ValueError("expected names or addresses without scheme and port, as in gradserve.example")
        return value

    @field_validator("cors_origins", "allowed_hosts", "facades", mode="before")
    @classmethod
    def _split_list(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("metrics_port", mode="before")
    @classmethod
    def _parse_port(cls, value: object) -> object:
        return None if value in ("", NO_VALUE) else value

    @field_validator("metrics_port")
    @classmethod
    def _check_port(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value and value == info.data.get("port"):
            raise ValueError(f"{flag('port')} has the same port; use another one")
        return value

    @field_validator("trace_endpoint", mode="before")
    @classmethod
    def _parse_endpoint(cls, value: object) -> object:
        if value in (None, "", NO_VALUE):
            return None
        url = urlsplit(str(value))
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("expected the http:// or https:// URL of a collector")
        return urlunsplit(url if url.path.strip("/") else url._replace(path="/v1/traces"))

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _KEY.fullmatch(value.get_secret_value()):
            raise ValueError("a key has 22 to 512 letters, digits and characters of -._~+/, and may end with =")
        return value

    @field_validator("cluster_address", mode="before")
    @classmethod
    def _parse_cluster_address(cls, value: object) -> object:
        if value in (None, "", NO_VALUE):
            return None
        url = urlsplit(str(value))
        if (
            url.scheme != "http"
            or not url.hostname
            or not url.port
            or url.path.strip("/")
            or url.query
            or "@" in url.netloc
        ):
            raise ValueError("expected the address of this server, as in http://10.0.0.7:8000")
        if url.hostname.strip("0.:") == "":
            raise ValueError("other servers cannot reach a wildcard address; use an address of this machine")
        return f"http://{url.netloc}"

    @property
    def server_name(self) -> str | None:
        """Name of this server in responses, if it is one of several."""
        if self.cluster_address is not None or self.ingress is None:
            return self.cluster_address
        return f"{socket.gethostname()}:{self.port}" if self.port else socket.gethostname()

    @field_validator("ingress", mode="before")
    @classmethod
    def _parse_ingress(cls, value: object) -> object:
        if value in (None, "", NO_VALUE):
            return None
        url = urlsplit(str(value))
        if (
            url.scheme not in ("http", "https")
            or not url.hostname
            or url.query
            or url.path.strip("/")
            or "@" in url.netloc
        ):
            raise ValueError("expected the address of an ingress, as in http://10.0.0.9:8000")
        return f"{url.scheme}://{url.netloc}"

    @field_validator("cluster_secret")
    @classmethod
    def _check_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _CLUSTER_SECRET.fullmatch(value.get_secret_value()):
            raise ValueError("a cluster secret has 32 to 512 visible ASCII characters")
        return value

    @field_validator("cache_dir", "tls_cert", "tls_key", "keys_file", mode="before")
    @classmethod
    def _parse_path(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return None if value in ("", NO_VALUE) else _absolute(value)

    @field_validator("state", mode="before")
    @classmethod
    def _parse_state(cls, value: object) -> object:
        if not isinstance(value, str | Path) or "://" in str(value):
            return value
        return NO_STATE if str(value) in ("", NO_STATE) else str(_absolute(value))


def _file_variable(name: str) -> str:
    """Return the environment variable that names a file with a secret, as Docker and Kubernetes mount them."""
    return f"{variable(name)}_FILE"


def _read_secret(name: str, path: str) -> str:
    """Read a secret from a file, without the newline at its end. Raises RuntimeError."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RuntimeError(f"{_file_variable(name)} names {printable(path)}, which cannot be read: {reason}") from None


def _absolute(place: str | Path) -> Path:
    try:
        return Path(place).expanduser().absolute()
    except RuntimeError:
        raise ValueError("its home directory is unknown") from None


def flag(name: str) -> str:
    """Return the command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def default(info: FieldInfo, settings: Settings) -> object:
    """Return the default of a setting on this machine."""
    return info.get_default(call_default_factory=True, validated_data=settings.model_dump())


def flag_value(value: object) -> str:
    """Write the value of a setting so that its flag accepts it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return NO_VALUE if value is None else str(value)


def format_setting(name: str, value: object) -> str:
    """Format a setting's value for a person; for a secret, say only whether it is set."""
    if name in SECRETS:
        return "not set" if value is None else "set"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, int) and SIZE in Settings.model_fields[name].metadata:
        return readable(value)
    return NO_VALUE if value is None else str(value)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that are for the server but not for its workers.

    These are our secrets and everything that could open a store or a trace collector: no worker connects to one.
    """
    hidden = {variable_of(name) for name in SECRETS for variable_of in (variable, _file_variable)}
    return {
        name: value
        for name, value in environment.items()
        if name.upper() not in hidden and not _FRONT_ONLY.search(name.upper())
    }


def service_links(environment: Mapping[str, str]) -> list[str]:
    """List the variables that Kubernetes sets for Services whose names begin like ours; they are not settings.

    A variable that ends with _PORT and has a plain number may be a port that a person has set.
    """
    links = [name for name in sorted(environment) if _SERVICE_LINK.fullmatch(name)]
    return [
        name for name in links if not name.endswith("_PORT") or _LINKED_PORT.search(name) or "://" in environment[name]
    ]


def misspelt(environment: Iterable[str]) -> str | None:
    """Return one sentence on the first unknown setting among these variables; None if there is none."""
    variables = {name: variable(name) for name in Settings.model_fields}
    accepted = {*variables.values(), *map(_file_variable, SECRETS), *map(variable, REMOVED)}
    for name in sorted(environment):
        upper = name.upper()
        if upper.startswith(PREFIX) and not upper.startswith(TEST_PREFIXES) and upper not in accepted:
            advice = hint(upper.removeprefix(PREFIX), variables, "gradserve serve --help lists all settings")
            return f"the environment variable {printable(name)} is not a setting; {advice}"
    return None


def removed_settings(environment: Iterable[str], stated: Iterable[str] = ()) -> list[str]:
    """Return a warning for each removed setting among these variables and among the names of the `stated` flags."""
    variables, flags = {name.upper() for name in environment}, {*stated}
    removed = [(variable(name), reason) for name, reason in REMOVED.items() if variable(name) in variables]
    removed += [(flag(name), reason) for name, reason in REMOVED.items() if name in flags]
    return [f"{name} has no effect: {reason}" for name, reason in removed]


def read_settings(**values: Any) -> Settings:
    """Read settings from these values and the environment, after removing the variables of Kubernetes from it.

    Raises RuntimeError with one sentence.
    """
    for name in service_links(os.environ):
        del os.environ[name]
    if sentence := misspelt(os.environ):
        raise RuntimeError(sentence)
    try:
        return Settings(**values)
    except ValidationError as error:
        raise RuntimeError(settings_error(error)) from None


def settings_for_worker(settings: Settings, processes: int) -> Settings:
    """Return the settings of one of several workers: the bytes for plans are divided among them."""
    return settings.model_copy(update={"plan_cache_bytes": settings.plan_cache_bytes // processes})


def budget_of(settings: Settings) -> WorkerBudget:
    """Return the budget of a worker that has these settings."""
    return worker_budget(settings.plan_cache_bytes, compiles=settings.compile == "on")


def settings_error(error: ValidationError) -> str:
    """Return one sentence on the first error in the settings."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    if name in SECRETS:
        return f"{variable(name)} cannot be used: {_reason(first)}"
    place, shown = f"{flag(name)} ({variable(name)})", printable(str(first["input"]))
    expected = _expected(name, first)
    return (
        f"{place} must be {expected}, but is “{shown}”"
        if expected
        else f"{place} cannot be “{shown}”: {_reason(first)}"
    )


def _reason(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _expected(name: str, error: ErrorDetails) -> str:
    """Return what a setting must be, with an example; "" for errors with a sentence of their own."""
    kind, info = error["type"], Settings.model_fields[name]
    if kind == "literal_error":
        return str(error["ctx"]["expected"]).replace("'", "")
    if not kind.startswith(("int_", "float_", "greater_", "less_")):
        return ""
    is_size = SIZE in info.metadata
    noun = "a size" if is_size else "a number" if info.annotation is float else "a whole number"
    bounds = {
        key: value
        for item in info.metadata
        for key in ("ge", "gt", "le")
        if (value := getattr(item, key, None)) is not None
    }
    low = f"at least {bounds['ge']}" if "ge" in bounds else f"above {bounds['gt']}" if "gt" in bounds else ""
    limits = " and ".join(filter(None, [low, f"at most {bounds['le']}" if "le" in bounds else ""]))
    example = format_setting(name, default(info, Settings.model_construct()))
    return f"{noun}{limits and ' of '}{limits}, as in {flag(name)} {'4GiB' if is_size else example}"
