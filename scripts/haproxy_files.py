"""HAProxy's configuration files in the Kubernetes manifests, as `gradserve ingress` writes them for its container."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from service.cluster.ingress.configuration import IngressLayout, files

FOLDER: Final = Path(__file__).parents[1] / "deploy/kubernetes/base/haproxy"
#: layout whose servers have the DNS name in the variable INGRESS_SERVERS, and whose metrics can be scraped
IN_A_CONTAINER: Final = IngressLayout(
    listen=":8000", dns='"${INGRESS_SERVERS}":8000', slots=64, metrics=":8405", threads=2, connections_to_each=1000
)


def pages() -> dict[Path, str]:
    """Return the text of each file, by path."""
    return {FOLDER / name: content.decode() for name, content in files(IN_A_CONTAINER).items()}
