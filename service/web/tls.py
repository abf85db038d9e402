"""TLS by certificate files."""

from __future__ import annotations

import ssl

from service.settings import Settings


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """What the settings ask for; None for plain HTTP. Raises RuntimeError where the files are no pair."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise RuntimeError("--tls-cert and --tls-key go together: a certificate and its key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = error.reason or "no certificate and key in PEM"
        raise RuntimeError(f"cannot use {certificate} with {key}: {reason}") from None
    except OSError as error:
        raise RuntimeError(f"cannot read {certificate} and {key}: {error.strerror}") from None
    return context
