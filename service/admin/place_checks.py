"""Checks of files and folders: compiled kernels, incidents, state, keys, certificates."""

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
from service.core.keys.key_file import read_keys
from service.core.machine import WRITABLE_BY_OTHERS
from service.core.settings import NO_STATE, Settings, flag
from service.store.objects import Exists, Objects
from service.store.places import open_objects, place_format, place_name
from service.web.listening import bind_socket, require_keys_for_remote, tls_context
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
        raise RuntimeError(f"{certificate} cannot be verified: {error.verify_message}") from None
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
        return fine("no kernels are compiled, and none kept")
    if settings.cache_dir is None:
        return doubtful("kernels are kept in memory, and compiled anew after each start", f"name a {flag('cache_dir')}")
    folder = settings.cache_dir / "kernels"
    advice = f"give it to the server's user alone, or name another {flag('cache_dir')}; until then, memory keeps them"
    if folder.is_dir():
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
            return doubtful(f"{folder} belongs to others as well", advice)
    reason = unwritable(folder)
    return doubtful(f"{folder} cannot be used: {reason}", advice) if reason else fine(f"kernels are kept in {folder}")


def incidents(settings: Settings) -> Diagnosis:
    """Check the cache folder for records of workers that were killed by a signal."""
    log = incidents_in(settings.cache_dir)
    if not log.incidents:
        return fine("no worker was ended by a signal" if settings.cache_dir else "of workers that end, nothing is kept")
    last = log.incidents[-1]
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(last.timestamp))
    count, condemned = len(log.incidents), len(log.condemned)
    says = (
        f"{count} {'workers were' if count > 1 else 'worker was'} ended by a signal, the last one by {last}, on {when}"
    )
    if not condemned:
        return doubtful(says, "see the log of that time, and report what is no SIGKILL")
    consequence = "a plan runs" if condemned == 1 else f"{condemned} plans run"
    return doubtful(f"{says}; {consequence} without kernels for it", "report it, with the log's lines on these plans")


def state(settings: Settings) -> Diagnosis:
    """Check the state's place: known format, writable, with free space, and private to the server's user."""
    place, remote = settings.state, "://" in settings.state
    if place == NO_STATE:
        return doubtful("tensors and graphs are kept in memory: a restart forgets them", f"name a {flag('state')}")
    try:
        if remote or Path(place).is_dir():
            with closing(open_objects(place)) as objects:
                place_format(objects, place_name(place))  # raises for anything but state of a known format
        if remote:
            with closing(open_objects(place)) as objects, ThreadPoolExecutor(_RACERS) as threads:
                winners = max(_count_winners(objects, threads) for _ in range(_RACES))
            if winners > 1:
                says = f"of {_RACERS} who made one object at {place} at once, {winners} were told that they did"
                advice = "two servers would both take it for theirs: name a store that knows If-None-Match: *"
                return broken(says, advice)
    except (OSError, RuntimeError) as error:
        return broken(str(error), f"name another {flag('state')}, or mend this one")
    return fine(f"tensors and graphs are kept at {place}") if remote else _state_folder(Path(place))


def _state_folder(folder: Path) -> Diagnosis:
    if reason := unwritable(folder):
        return broken(
            f"{folder} cannot be used: {reason}", f"give it to the server's user, or name another {flag('state')}"
        )
    free = shutil.disk_usage(_existing(folder)).free
    says = f"tensors and graphs are kept in {folder}, where {free / (1 << 30):.1f} GiB are free"
    if free < _LOW_DISK_BYTES:
        return doubtful(says, "a full disk refuses writes with 507: make room")
    if folder.is_dir() and folder.stat().st_mode & _OTHERS_ACCESS:
        return doubtful(says, f"others can look into it: chmod 700 {folder}")
    return fine(says)


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
        return fine("callers need the key that GRADSERVE_API_KEY has")
    try:
        with bind_socket(settings.host, 0) as listening:
            require_keys_for_remote(settings, listening)
    except RuntimeError as error:
        return broken(str(error), "gradserve keys add NAME makes a key")
    if settings.insecure == "on":
        return doubtful(f"nobody needs a key, as {flag('insecure')} says", "see that only those come here who may")
    return fine("callers need no key, and come from this machine alone")


def _keys_file(file: Path) -> Diagnosis:
    """Check the key file: valid, and readable only by the server's user."""
    try:
        count, status = len(read_keys(file)), file.stat()
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        return broken(f"{file} cannot be used: {reason}", "gradserve keys add NAME makes one")
    if status.st_mode & _OTHERS_ACCESS:
        return doubtful(f"{file} can be read by others", f"chmod 600 {file}")
    if not count:
        return doubtful(f"{file} has no key: nobody may call", "gradserve keys add NAME adds one")
    return fine(f"callers need one of {count} keys of {file}")


def certificate(settings: Settings) -> Diagnosis:
    """Check the TLS files, and when the certificate expires."""
    try:
        context = tls_context(settings)
        if context is None or settings.tls_cert is None or settings.tls_key is None:
            return fine("plain HTTP is served")
        days = seconds_left(context, settings.tls_cert, time.time()) / 86_400
    except RuntimeError as error:
        return broken(str(error), f"name a certificate and its key with {flag('tls_cert')} and {flag('tls_key')}")
    if days < 0:
        return broken(f"{settings.tls_cert} has expired", "renew it, and start the server anew")
    if days < _RENEWAL_DAYS:
        return doubtful(f"{settings.tls_cert} ends in {days:.0f} days", "renew it, and start the server anew")
    if settings.tls_key.stat().st_mode & _OTHERS_ACCESS:
        return doubtful(f"{settings.tls_key} can be read by others", f"chmod 600 {settings.tls_key}")
    return fine(f"{settings.tls_cert} is good for {days:.0f} days")


def unwritable(folder: Path) -> str | None:
    """Return why the folder, or its nearest existing parent, is not writable; None if it is."""
    existing = _existing(folder)
    if not existing.is_dir():
        return f"{existing} is no folder"
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
