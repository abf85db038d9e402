"""Key-value store of Ray, which its head keeps."""

from __future__ import annotations

from typing import Final

from ray.experimental import internal_kv

_NAMESPACE: Final = b"gradserve"


class RayStore:
    """The store, as a KeyValueStore."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write it, in place of what is there."""
        internal_kv._internal_kv_put(key, value, overwrite=True, namespace=_NAMESPACE)  # noqa: SLF001 - it has no other name

    def get(self, key: bytes) -> bytes | None:
        """What is there."""
        found: bytes | None = internal_kv._internal_kv_get(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put
        return found

    def delete(self, key: bytes) -> None:
        """Remove it, where it is there."""
        internal_kv._internal_kv_del(key, namespace=_NAMESPACE)  # noqa: SLF001 - as put

    def keys(self, prefix: bytes) -> list[bytes]:
        """All that begin so."""
        return list(internal_kv._internal_kv_list(prefix, namespace=_NAMESPACE))  # noqa: SLF001 - as put
