"""Checks of the setup: extras, the cluster, compiled kernels, incidents, state, keys, certificates."""

from __future__ import annotations

import os
import secrets
import shutil
import ssl
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Barrier
from typing import Final

from service.admin.diagnosis import Diagnosis, broken, doubtful, fine
from service.app import load_cluster, load_ingress, load_tracing
from service.core.keys.key_file import read_keys
from service.core.machine import WRITABLE_BY_OTHERS
from service.core.settings import NO_STATE, Settings, flag
from service.store.objects import Exists, Objects
from service.store.places import SHARED_FORMAT, WHOLE_FORMAT, inspect_place, open_objects, place_name, require_shards
from service.web.head import is_of_this_machine
from service.web.listening import bind_socket, host_and_port, require_keys_for_remote, tls_context
from service.workers.incidents import incidents_in

#: threads that race to create one object in a cloud store, and number of races
_RACERS: Final = 8
_RACES: Final = 5
_OTHERS_ACCESS: Final = stat.S_IRWXG | stat.S_IRWXO
#: free bytes below which a disk is nearly full
_LOW_DISK_BYTES: Final = 1 << 30
#: days before expiry at which a certificate should be replaced
_RENEWAL_DAYS: Final = 21


def seconds_left(context: ssl.SSLContext, certificate: Path, now: float) -> float:
    """Return the seconds from `now` (Unix time) until the certificate of `context` expires; negative after that.

    Python exposes a certificate only in a handshake, so this makes one in memory. Raises RuntimeError.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trust the certificate itself, no matter who issued it
    client.load_verify_locations(certificate)
    try:
        peer = _handshake(client, context)
    except ssl.SSLCertVerificationError as error:
        raise RuntimeError(f"cannot verify {certificate}: {error.verify_message}") from None
    return ssl.cert_time_to_seconds(str(peer["notAfter"])) - now


def _handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, object]:
    """Make a handshake in memory, and return the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    while True:
        try:
            client_side.do_handshake()
            break
        except ssl.SSLWantReadError:
            try:
                server_side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(client_side.getpeercert() or {})


def cache(settings: Settings) -> Diagnosis:
    """Check the folder for compiled kernels: a server uses it only if nobody else can write to it."""
    if settings.compile == "off":
        return fine("kernels are not compiled, so nothing is cached")
    if settings.cache_dir is None:
        return doubtful(
            "kernels are cached only in memory, and compiled again after each start", f"set {flag('cache_dir')}"
        )
    folder = settings.cache_dir / "kernels"
    advice = (
        f"make it private to the server's user, or set another {flag('cache_dir')}; the server caches kernels in memory"
    )
    if folder.is_dir():
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
            return doubtful(f"{folder} belongs to another user, or others can write to it", advice)
    reason = unwritable(folder)
    return doubtful(f"cannot use {folder}: {reason}", advice) if reason else fine(f"kernels are cached in {folder}")


def incidents(settings: Settings) -> Diagnosis:
    """Check the cache folder for records of workers that were killed by a signal."""
    log = incidents_in(settings.cache_dir)
    if not log.incidents:
        return fine("no worker was killed by a signal" if settings.cache_dir else "incidents are not recorded on disk")
    last = log.incidents[-1]
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(last.timestamp))
    count, condemned = len(log.incidents), len(log.condemned)
    says = (
        f"{count} {'workers were' if count > 1 else 'worker was'} killed by a signal, the last one by {last}, on {when}"
    )
    if not condemned:
        return doubtful(says, "see the log of that time, and report every signal but SIGKILL")
    consequence = "a plan runs" if condemned == 1 else f"{condemned} plans run"
    return doubtful(
        f"{says}; {consequence} without kernels because of it", "report it, with the lines of the log about these plans"
    )


def extras(settings: Settings) -> Diagnosis:
    """Check whether the extras that these settings need are installed. The check of the state covers that of `s3`."""
    loaders = {
        load_cluster: settings.cluster == "on",
        load_ingress: settings.ingress is not None,
        load_tracing: settings.trace_endpoint is not None,
    }
    try:
        for load in (load for load, is_needed in loaders.items() if is_needed):
            load()
    except RuntimeError as error:
        return broken(str(error), "the server does not start without it")
    return fine("all extras that these settings need are installed")


def cluster(settings: Settings) -> Diagnosis:
    """Check what a server needs to be in a cluster: a state that servers can share, an address and a secret."""
    if settings.cluster == "off":
        return fine(f"this server is in no cluster ({flag('cluster')} off)")
    try:
        load_cluster()
        from service.cluster.composition import address_and_secret  # noqa: PLC0415 - an extra

        address, _ = address_and_secret(settings)
    except RuntimeError as error:
        return broken(str(error), "the server does not start without it")
    if is_of_this_machine(address.removeprefix("http://")):
        return doubtful(f"only servers on this machine can reach {address}", f"set another {flag('cluster_address')}")
    if is_of_this_machine(host_and_port(settings.host, settings.port)):
        return doubtful(
            f"{flag('host')} {settings.host} accepts connections only from this machine, but other servers have to "
            f"reach {address}",
            f"set {flag('host')} to an address of a private network",
        )
    if settings.tls_cert is not None:
        return doubtful(
            f"servers ask each other in plain HTTP, at {address}, but this server uses TLS ({flag('tls_cert')})",
            "use TLS at the ingress instead, and a private network between the servers",
        )
    return fine(f"other servers reach this one at {address}")


def state(settings: Settings) -> Diagnosis:
    """Check the state's place: its format, writable, with free space, and private to the server's user."""
    place, remote = settings.state, "://" in settings.state
    if place == NO_STATE:
        return doubtful("tensors and graphs are only in memory: a restart loses them", f"set {flag('state')}")
    try:
        if remote or Path(place).is_dir():
            inspect_place(place, SHARED_FORMAT if settings.cluster == "on" else WHOLE_FORMAT)
            if settings.cluster == "on":
                with closing(open_objects(place)) as objects:
                    require_shards(objects, place_name(place), settings.shards)
        winners = _most_winners(place) if remote else 1
    except OSError as error:
        says = f"cannot use {place_name(place)}: {error.strerror or error}"
        return broken(says, f"set another {flag('state')}, or repair this one")
    except RuntimeError as error:
        return broken(str(error), f"set another {flag('state')}, or repair this one")
    if winners > 1:
        says = f"{_RACERS} clients created one object at {place} at the same time, and {winners} of them succeeded"
        advice = "two servers could both take over the state: use a store that supports If-None-Match: *"
        return broken(says, advice)
    return fine(f"tensors and graphs are stored at {place}") if remote else _state_folder(Path(place))


def _state_folder(folder: Path) -> Diagnosis:
    if reason := unwritable(folder):
        return broken(
            f"cannot use {folder}: {reason}", f"make it writable for the server's user, or set another {flag('state')}"
        )
    free = shutil.disk_usage(_existing(folder)).free
    says = f"tensors and graphs are stored in {folder}, where {free / (1 << 30):.1f} GiB are free"
    if free < _LOW_DISK_BYTES:
        return doubtful(says, "if the disk is full, writes get 507: free space")
    if folder.is_dir() and folder.stat().st_mode & _OTHERS_ACCESS:
        return doubtful(says, f"other users can read it: chmod 700 {folder}")
    return fine(says)


def _most_winners(place: str) -> int:
    """Race for objects of a place several times; return the most winners of a race. Raises OSError."""
    with closing(open_objects(place)) as objects, ThreadPoolExecutor(_RACERS) as threads:
        return max(_count_winners(objects, threads) for _ in range(_RACES))


def _count_winners(objects: Objects, threads: ThreadPoolExecutor) -> int:
    """Let several threads create one object at the same time; return how many were told that they created it."""
    key, start = f"races/{secrets.token_hex(8)}", Barrier(_RACERS)

    def create(number: int) -> bool:
        start.wait()
        try:
            objects.put_new(key, [bytes([number])])
        except Exists:
            return False
        return True

    try:
        return sum(threads.map(create, range(_RACERS)))
    finally:
        objects.delete([key])


def keys(settings: Settings) -> Diagnosis:
    """Check that only authorised clients can make requests."""
    if settings.keys_file is not None:
        return _keys_file(settings.keys_file)
    if settings.api_key is not None:
        return fine("clients need a single API key (GRADSERVE_API_KEY)")
    try:
        with bind_socket(settings.host, 0) as listening:
            require_keys_for_remote(settings, listening)
    except RuntimeError as error:
        return broken(str(error), "create a key with gradserve keys add NAME")
    except (OSError, UnicodeError):
        return doubtful(f"cannot listen on {settings.host}, so nobody can connect", "see the check of the port")
    if settings.insecure == "on":
        return doubtful(
            f"clients need no key ({flag('insecure')})", "make sure that only authorised clients can connect"
        )
    return fine("clients need no key, and only this machine can connect")


def _keys_file(file: Path) -> Diagnosis:
    """Check the key file: valid, and readable only by the server's user."""
    try:
        count, status = len(read_keys(file)), file.stat()
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        return broken(f"cannot use the key file {file}: {reason}", "create one with gradserve keys add NAME")
    if status.st_mode & _OTHERS_ACCESS:
        return doubtful(f"other users can read {file}", f"chmod 600 {file}")
    if not count:
        return doubtful(f"{file} has no key, so all requests are rejected", "add one with gradserve keys add NAME")
    return fine(f"clients need a key of {file}, which has {count}")


def certificate(settings: Settings) -> Diagnosis:
    """Check the TLS files, and when the certificate expires."""
    try:
        context = tls_context(settings)
        if context is None or settings.tls_cert is None or settings.tls_key is None:
            return fine("plain HTTP, without TLS")
        days = seconds_left(context, settings.tls_cert, time.time()) / 86_400
    except RuntimeError as error:
        return broken(str(error), f"set {flag('tls_cert')} and {flag('tls_key')} to a certificate and its key")
    if days < 0:
        return broken(f"{settings.tls_cert} has expired", "renew it, and restart the server")
    if days < _RENEWAL_DAYS:
        return doubtful(f"{settings.tls_cert} expires in {days:.0f} days", "renew it, and restart the server")
    if settings.tls_key.stat().st_mode & _OTHERS_ACCESS:
        return doubtful(f"other users can read {settings.tls_key}", f"chmod 600 {settings.tls_key}")
    return fine(f"{settings.tls_cert} is valid for {days:.0f} days")


def unwritable(folder: Path) -> str | None:
    """Return why the folder, or its nearest existing parent, is not writable; None if it is."""
    existing = _existing(folder)
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with NamedTemporaryFile(dir=existing, prefix=".gradserve-doctor-") as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(path for path in (folder, *folder.parents) if path.exists())
