"""Notes about initialisers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from gradserve_client.importing import Note
from gradserve_client.onnx.scope import Value

#: maximum number of reading nodes that a note names
_NAMED = 4


def notes_of(leaves: Iterable[Value], parameters: Container[str]) -> Iterator[Note]:
    """Yield a note for each parameter that several nodes read, and for each float initialiser that is no parameter."""
    for leaf in leaves:
        if leaf.name in parameters and len(leaf.readers) > 1:
            yield Note("leaf", leaf.name, len(leaf.readers), _shared(leaf))
        elif leaf.trained and leaf.readers and leaf.name not in parameters:
            yield Note("leaf", leaf.name, len(leaf.readers), "its value is part of the graph, or no output needs it")


def _shared(leaf: Value) -> str:
    read = ", ".join(leaf.readers[:_NAMED]) + (", …" if len(leaf.readers) > _NAMED else "")
    return (
        f"read by {len(leaf.readers)} nodes, {read}: its gradient is the sum of theirs. An exporter may have merged "
        "equal initialisers; to train them separately, import through torch.export"
    )
