"""The files of HAProxy that the manifests have: what `gradserve ingress` has it read, for containers of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from service.cluster.ingress.configuration import IngressLayout, files

FOLDER: Final = Path(__file__).parents[1] / "deploy/kubernetes/base/haproxy"
#: servers by a name that the variable INGRESS_SERVERS has; and metrics where whoever collects them reaches them
IN_A_CONTAINER: Final = IngressLayout(
    listen=":8000", dns='"${INGRESS_SERVERS}":8000', slots=64, metrics=":8405", threads=2, connections_to_each=1000
)


def pages() -> dict[Path, str]:
    """The text of each, by path."""
    return {FOLDER / name: content.decode() for name, content in files(IN_A_CONTAINER).items()}
