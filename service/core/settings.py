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
IGNORED_LINKS: Final = "passed over, since Kubernetes makes them for a Service of this name: %s"
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
    port: int = Field(8000, ge=0, le=65535, description="port to listen on; 0 takes a free one and prints it")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="what computes: cpu, cuda, or auto (cuda where a GPU can be used)"
    )
    workers: int = Field(
        default_factory=lambda: min(4, machine.cpus()),
        ge=1,
        le=256,
        description="requests that compute at the same time",
    )
    queue: int = Field(1024, ge=0, description="requests that wait for a worker; one more gets 503 queue_full")
    held_bytes: Size = Field(
        default_factory=lambda: machine.memory_bytes() // 4,
        ge=1,
        description="bytes of large bodies and answers that are held at a time; more get 503 queue_full. "
        "Default: a quarter of the memory",
    )
    timeout_ms: int = Field(30_000, ge=1, le=86_400_000, description="time for one request; ?timeout_ms= may lower it")
    max_nodes: int = Field(100_000, ge=1, description="nodes of a graph and its functions as they are sent")
    max_expanded_nodes: int = Field(
        1_000_000, ge=1, description="nodes of a graph with those of its gradients and of each use of a function"
    )
    max_depth: int = Field(16, ge=1, description="levels of functions that run within functions")
    max_expansion: int = Field(
        50, ge=1, description="nodes that gradients may add for each node sent, where they add more than 30,000"
    )
    max_rank: int = Field(32, ge=1, le=64, description="axes of a tensor")
    max_body_bytes: Size = Field(64 << 20, ge=1, description="bytes of a request's body in JSON")
    max_binary_bytes: Size = Field(1 << 30, ge=1, description="bytes of a request's body in safetensors")
    max_header_bytes: Size = Field(16 << 10, ge=1024, description="bytes of a request's line and headers")
    json_depth: int = Field(100, ge=8, le=190, description="levels of nesting in a JSON body")
    max_bytes: Size = Field(
        default_factory=_default_max_bytes,
        ge=1,
        description="peak bytes of one execution; default: half the memory, divided by the workers, or less where the "
        "limits of all processes would not fit in it",
    )
    max_flops: int = Field(
        default_factory=lambda: 10**12 * machine.cpus(),
        ge=1,
        description="floating-point operations of one execution; default: 10^12 for each processor",
    )
    max_response_bytes: Size = Field(256 << 20, ge=1, description="bytes of an answer, at most")
    plan_cache: int = Field(256, ge=1, description="plans that are kept for requests of the same graph and shapes")
    plan_cache_bytes: Size = Field(
        default_factory=_default_plan_cache_bytes,
        ge=0,
        description="bytes of these plans together, a quarter of them for the memory of plans that are ready to run "
        "again, and an eighth for graphs that were read; what alone takes more is not kept. Default: 1GiB, or an "
        "eighth of the memory where that is less",
    )
    device_bytes: Size = Field(
        0, ge=0, description="bytes of a GPU's memory that its worker takes at most; 0: nine tenths of it"
    )
    device_workspace: Size = Field(
        64 << 20,
        ge=0,
        description="bytes of these that kernels and libraries work in, one after the other, taken at the start; a "
        "quarter of what the worker takes, at most. What would need more is computed in another way",
    )
    worker_jobs: int = Field(0, ge=0, description="requests after which a worker process is replaced; 0: never")
    worker_age: int = Field(0, ge=0, description="seconds after which a worker process is replaced; 0: never")
    worker_bytes: Size = Field(
        default_factory=_default_worker_bytes,
        ge=0,
        description="private memory of a worker process upon which it is replaced; 0: never. Default: what it may use "
        "at the peak of an execution and for its plans",
    )
    max_graphs: int = Field(10_000, ge=0, description="registered graphs that are kept; one more gets 507 store_full")
    max_graph_bytes: Size = Field(GRAPH_BYTES, ge=0, description="bytes of the registered graphs together")
    max_tensors: int = Field(10_000, ge=0, description="resident tensors that are kept; one more gets 507 store_full")
    max_tensor_bytes: Size = Field(
        default_factory=lambda: machine.memory_bytes() // 4,
        ge=0,
        description="bytes of the resident tensors together, in memory. Default: a quarter of it",
    )
    max_models: int = Field(1000, ge=0, description="models that are kept; one more gets 507 store_full")
    max_model_bytes: Size = Field(MODEL_BYTES, ge=0, description="bytes of the models together")
    write_behind_ms: int = Field(
        1000, ge=1, le=3_600_000, description="time within which tensors that need not be durable are on disk"
    )
    idempotency_seconds: int = Field(
        600, ge=1, le=86_400, description="seconds for which a call with an Idempotency-Key is answered as before"
    )
    max_answers: int = Field(100_000, ge=0, description="answers that are kept for that; one more gets 507 store_full")
    max_answer_bytes: Size = Field(ANSWER_BYTES, ge=0, description="bytes of these answers together")
    namespace_share: int = Field(
        25,
        ge=1,
        le=100,
        description="percent of each of these six limits that one namespace may fill, where keys are asked for and "
        "none of its keys states another limit",
    )
    compile: Literal["on", "off"] = Field(
        "on", description="whether plans that run again get kernels of machine code; off: NumPy computes everything"
    )
    determinism: Literal["fast", "bitwise"] = Field(
        "fast",
        description="fast: the last bits of what a plan answers may change while its compiled kernels arrive, twice at "
        "most; "
        "bitwise: they are decided before its first answer, which waits for the compiler",
    )
    precision: Precision = Field(
        IEEE,
        description="how products and convolutions may read float32 on a GPU, in requests that do not say: float32, "
        "tf32x3, tf32 or bfloat16, the most exact first; a processor computes float32",
    )
    least_precision: Precision = Field(
        PRECISIONS[-1], description="the least exact precision that requests may ask for; for less they get 422"
    )
    cache_dir: Path | None = Field(
        default_factory=machine.cache_folder,
        description="folder for compiled kernels; none: kept in memory alone. Default: gradserve in $XDG_CACHE_HOME or "
        "~/.cache, none where there is no home",
    )
    state: str = Field(
        default_factory=lambda: str(machine.state_folder() or NO_STATE),
        description="where graphs, tensors and answers are kept: a folder, s3://BUCKET/FOLDER, gs://… or az://…; "
        "memory: they end with the server. Default: gradserve in $XDG_STATE_HOME or ~/.local/state, memory where there "
        "is no home",
    )
    lease_ms: int = Field(
        1000,
        ge=0,
        le=60_000,
        description="of a state in s3:// and the like: time for which a look at it is good enough for answers, and "
        "for which, with a fifth more, a server that begins waits; 0: each answer takes a look of its own",
    )
    cluster: Literal["on", "off"] = Field(
        "off",
        description="whether servers share a state in s3:// and the like: each owns parts of it, and asks the others "
        "for theirs",
    )
    cluster_address: str | None = Field(
        None, description="where the other servers reach this one, as http://HOST:PORT; none: nowhere"
    )
    ingress: str | None = Field(
        None,
        description="the ingress before this server and others, as http://HOST:PORT: pieces of long sums go there; "
        "none: nowhere",
    )
    cluster_secret: SecretStr | None = Field(
        None, description="what servers of a cluster know each other by; 32 characters or more, by the variable alone"
    )
    cors_origins: tuple[str, ...] = Field(
        (), description="web origins that may call from a browser, separated by commas; * for all"
    )
    facades: tuple[FacadeName, ...] = Field(
        (),
        description="protocols of others that are served beside /v1, separated by commas: umbridge, "
        "openinference, tesseract",
    )
    header_timeout: float = Field(
        8.0, gt=0, le=3600, allow_inf_nan=False, description="seconds in which a request's head has to come"
    )
    body_timeout: float = Field(
        8.0, gt=0, le=3600, allow_inf_nan=False, description="seconds without a byte of the body before 408"
    )
    send_timeout: float = Field(
        20.0, gt=0, le=3600, allow_inf_nan=False, description="seconds in which nothing of an answer is taken"
    )
    min_rate: int = Field(240, ge=1, description="bytes a second that a body comes at, on average, or more")
    min_send_rate: int = Field(4096, ge=1, description="bytes a second that an answer is taken at, on average, or more")
    max_chunks: int = Field(262_144, ge=1, description="chunks of a body that comes in chunks")
    max_connections: int = Field(4096, ge=1, description="connections at a time; on more, only health is answered")
    max_connections_per_client: int = Field(
        default_factory=_default_connections_per_client,
        ge=1,
        description="connections at a time from one address. Default: an eighth of all",
    )
    drain_bytes: Size = Field(
        16 << 20, ge=0, description="bytes read and dropped after an early refusal, so that the client sees it"
    )
    keep_alive: int = Field(75, ge=1, description="seconds that an idle connection stays open")
    shutdown_grace: int = Field(30, ge=1, description="seconds that work in flight gets after SIGTERM")
    tls_cert: Path | None = Field(
        None, description="file with the certificate, and those that lead to its issuer, in PEM; none: plain HTTP"
    )
    tls_key: Path | None = Field(None, description="file with the certificate's key, in PEM")
    keys_file: Path | None = Field(
        None, description="file of the keys that callers need, which `gradserve keys` writes; none: no keys"
    )
    api_key: SecretStr | None = Field(
        None,
        description="one key that may do everything, for a container; 22 characters or more, by the variable alone",
    )
    insecure: Literal["on", "off"] = Field(
        "off", description="whether a server without keys may listen where other machines reach it"
    )
    confine: Literal["on", "off"] = Field(
        "on",
        description="whether the kernel keeps workers from files other than libraries and compiled kernels, from "
        "sockets, and from other processes",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default_factory=_default_allowed_hosts,
        description="names and addresses, separated by commas, beside those of the loopback, by which a server without "
        "keys may be called; * for all. Default: *, where --insecure is on",
    )
    playground: Literal["on", "off"] = Field(
        "on", description="whether `/` is a page on which requests are written, drawn and run; off: it leads to /docs"
    )
    metrics: Literal["keys", "open"] = Field(
        "keys", description="who may read /metrics where keys are set: keys of the scope admin, or everybody"
    )
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="port of a listener of its own for /metrics and /health/, in plain HTTP and without keys; /metrics "
        "is not on --port then. 0 takes a free port and prints it. none: /metrics is on --port",
    )
    metrics_host: str = Field("127.0.0.1", min_length=1, description="address that --metrics-port listens on")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least level to log")
    log_format: Literal["text", "json"] = Field(
        "text", description="how the log is written; json: an object a line, for programs that read it"
    )
    trace_endpoint: str | None = Field(
        None,
        description="URL of an OpenTelemetry collector that gets traces of requests, as OTLP over HTTP; without a "
        "path, /v1/traces is meant. The variables OTEL_* say the rest. none: no traces",
    )

    def __init__(self, **values: Any) -> None:
        variables = {name.upper(): value for name, value in os.environ.items()}  # names are case-insensitive
        fields = {name: variables[variable(name)] for name in Settings.model_fields if variable(name) in variables}
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
            raise ValueError(
                f"the precision of requests that ask for none, {flag('precision')} {default_precision}, is less exact"
            )
        return value

    @field_validator("allowed_hosts")
    @classmethod
    def _check_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_HOST.fullmatch, value)):
            raise ValueError("names or addresses without scheme and port were expected, as in gradserve.example")
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
            raise ValueError(f"a port other than that of {flag('port')} was expected")
        return value

    @field_validator("trace_endpoint", mode="before")
    @classmethod
    def _parse_endpoint(cls, value: object) -> object:
        if value in (None, "", NO_VALUE):
            return None
        url = urlsplit(str(value))
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("an http:// or https:// URL of a collector was expected")
        return urlunsplit(url if url.path.strip("/") else url._replace(path="/v1/traces"))

    @field_validator("api_key")
    @classmethod
    def _check_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _KEY.fullmatch(value.get_secret_value()):
            raise ValueError("a key has 22 to 512 letters, digits and characters of -._~+/, then = if any")
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
            raise ValueError("the address of this server was expected, as in http://10.0.0.7:8000")
        if url.hostname.strip("0.:") == "":
            raise ValueError("others reach no server at a wildcard address; name one that is this machine's alone")
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
            raise ValueError("the address of an ingress was expected, as in http://10.0.0.9:8000")
        return f"{url.scheme}://{url.netloc}"

    @field_validator("cluster_secret")
    @classmethod
    def _check_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not _CLUSTER_SECRET.fullmatch(value.get_secret_value()):
            raise ValueError("a secret of servers has 32 to 512 visible ASCII characters")
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


def _absolute(place: str | Path) -> Path:
    try:
        return Path(place).expanduser().absolute()
    except RuntimeError:
        raise ValueError("the home that it begins with is not known") from None


def flag(name: str) -> str:
    """Return the command-line flag of a setting."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def default(info: FieldInfo, settings: Settings) -> object:
    """Return the default of a setting on this machine."""
    return info.get_default(call_default_factory=True, validated_data=settings.model_dump())


def format_setting(name: str, value: object) -> str:
    """Format a setting's value readably, so that it can be passed again; for a secret, say only whether it is set."""
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
    hidden = {variable(name) for name in SECRETS}
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
    accepted = {*variables.values(), *map(variable, REMOVED)}
    for name in sorted(environment):
        upper = name.upper()
        if upper.startswith(PREFIX) and not upper.startswith(TEST_PREFIXES) and upper not in accepted:
            advice = hint(upper.removeprefix(PREFIX), variables, "gradserve serve --help lists all settings")
            return f"the environment has {printable(name)}, which is no setting; {advice}"
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
