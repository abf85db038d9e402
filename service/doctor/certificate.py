"""End of a certificate: asked of a handshake with itself in memory, since Python reads no certificate otherwise."""

from __future__ import annotations

import ssl
from pathlib import Path


def seconds_left(context: ssl.SSLContext, certificate: Path, now: float) -> float:
    """Return the seconds until the certificate of `context` expires, from `now` in Unix seconds; negative once it has.

    Raises RuntimeError where it cannot be told.
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
    """The server's certificate, once both have shaken hands."""
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
