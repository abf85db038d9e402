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
from service.web.listening import bound, keep_to_this_machine, tls_context
from service.workers.incidents import incidents_in

#: threads that race for an object in the cloud, and number of races
_RACERS: Final = 8
_RACES: Final = 5
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
#: free bytes under which a folder is nearly full
_LITTLE: Final = 1 << 30
#: days before its end at which a certificate should have been replaced
_SOON: Final = 21


def seconds_left(context: ssl.SSLContext, certificate: Path, now: float) -> float:
    """Return the seconds until the certificate of `context` expires, from `now` in Unix seconds; negative once it has.

    Python reads a certificate only in a handshake, so there is one with itself in memory. Raises RuntimeError.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it vouches for itself, whoever has issued it
    client.load_verify_locations(certificate)
    try:
        peer = _shaken(client, context)
    except ssl.SSLCertVerificationError as error:
        raise RuntimeError(f"{certificate} cannot be verified: {error.verify_message}") from None
    return ssl.cert_time_to_seconds(str(peer["notAfter"])) - now


def _shaken(client: ssl.SSLContext, server: ssl.SSLContext) -> dict[str, object]:
    """Make a handshake, and return the server's certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    while True:
        try:
            asking.do_handshake()
            break
        except ssl.SSLWantReadError:
            try:
                serving.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return dict(asking.getpeercert() or {})


def cache(settings: Settings) -> Diagnosis:
    """Check the folder for compiled kernels: a server uses it only while nobody else can write to it."""
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
    """Check the cache folder for workers that a signal has ended."""
    known = incidents_in(settings.cache_dir)
    if not known.incidents:
        return fine("no worker was ended by a signal" if settings.cache_dir else "of workers that end, nothing is kept")
    last = known.incidents[-1]
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(last.at))
    count, spared = len(known.incidents), len(known.condemned)
    says = (
        f"{count} {'workers were' if count > 1 else 'worker was'} ended by a signal, the last one by {last}, on {when}"
    )
    if not spared:
        return doubtful(says, "see the log of that time, and report what is no SIGKILL")
    whose = "a plan runs" if spared == 1 else f"{spared} plans run"
    return doubtful(f"{says}; {whose} without kernels for it", "report it, with the log's lines on these plans")


def state(settings: Settings) -> Diagnosis:
    """Check the place for tensors and graphs: ours, writable, with space, and for the server's user alone."""
    place, remote = settings.state, "://" in settings.state
    if place == NO_STATE:
        return doubtful("tensors and graphs are kept in memory: a restart forgets them", f"name a {flag('state')}")
    try:
        if remote or Path(place).is_dir():
            with closing(open_objects(place)) as objects:
                place_format(objects, place_name(place))  # raises for anything but state of a known format
        if remote:
            with closing(open_objects(place)) as objects, ThreadPoolExecutor(_RACERS) as threads:
                winners = max(_won(objects, threads) for _ in range(_RACES))
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
    if free < _LITTLE:
        return doubtful(says, "a full disk refuses writes with 507: make room")
    if folder.is_dir() and folder.stat().st_mode & _OTHERS:
        return doubtful(says, f"others can look into it: chmod 700 {folder}")
    return fine(says)


def _won(objects: Objects, threads: ThreadPoolExecutor) -> int:
    """Have several threads create one object at once, and count those that were told that they did."""
    key, start = f"races/{secrets.token_hex(8)}", Barrier(_RACERS)

    def made(number: int) -> bool:
        start.wait()
        try:
            objects.put_new(key, [bytes([number])])
        except Exists:
            return False
        return True

    try:
        return sum(threads.map(made, range(_RACERS)))
    finally:
        objects.delete([key])


def keys(settings: Settings) -> Diagnosis:
    """Check that only those may call who should."""
    if settings.keys_file is not None:
        return _keys_file(settings.keys_file)
    if settings.api_key is not None:
        return fine("callers need the key that GRADSERVE_API_KEY has")
    try:
        with bound(settings.host, 0) as listening:
            keep_to_this_machine(settings, listening)
    except RuntimeError as error:
        return broken(str(error), "gradserve keys add NAME makes a key")
    if settings.insecure == "on":
        return doubtful(f"nobody needs a key, as {flag('insecure')} says", "see that only those come here who may")
    return fine("callers need no key, and come from this machine alone")


def _keys_file(file: Path) -> Diagnosis:
    """Check the key file: valid, and for the server's user alone to read."""
    try:
        count, status = len(read_keys(file)), file.stat()
    except (OSError, ValueError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        return broken(f"{file} cannot be used: {reason}", "gradserve keys add NAME makes one")
    if status.st_mode & _OTHERS:
        return doubtful(f"{file} can be read by others", f"chmod 600 {file}")
    if not count:
        return doubtful(f"{file} has no key: nobody may call", "gradserve keys add NAME adds one")
    return fine(f"callers need one of {count} keys of {file}")


def certificate(settings: Settings) -> Diagnosis:
    """Check the files of TLS, and when the certificate expires."""
    try:
        context = tls_context(settings)
        if context is None or settings.tls_cert is None or settings.tls_key is None:
            return fine("plain HTTP is served")
        days = seconds_left(context, settings.tls_cert, time.time()) / 86_400
    except RuntimeError as error:
        return broken(str(error), f"name a certificate and its key with {flag('tls_cert')} and {flag('tls_key')}")
    if days < 0:
        return broken(f"{settings.tls_cert} has expired", "renew it, and start the server anew")
    if days < _SOON:
        return doubtful(f"{settings.tls_cert} ends in {days:.0f} days", "renew it, and start the server anew")
    if settings.tls_key.stat().st_mode & _OTHERS:
        return doubtful(f"{settings.tls_key} can be read by others", f"chmod 600 {settings.tls_key}")
    return fine(f"{settings.tls_cert} is good for {days:.0f} days")


def unwritable(folder: Path) -> str | None:
    """Return why nothing can be written to a folder, or to its nearest existing parent; None if that works."""
    there = _existing(folder)
    if not there.is_dir():
        return f"{there} is no folder"
    try:
        with NamedTemporaryFile(dir=there, prefix=".gradserve-doctor-") as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return os.strerror(error.errno or 0)
    return None


def _existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(each for each in (folder, *folder.parents) if each.exists())
