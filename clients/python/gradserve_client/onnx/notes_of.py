"""What is noted of initialisers."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from gradserve_client.importing import Note
from gradserve_client.onnx.scope import Value

#: how many of the nodes that read an initialiser are named
_NAMED = 4


def notes_of(leaves: Iterable[Value], kept: Container[str]) -> Iterator[Note]:
    """A note for each parameter that several nodes read, and for floats whose values became part of the graph."""
    for leaf in leaves:
        if leaf.name in kept and len(leaf.readers) > 1:
            yield Note("leaf", leaf.name, len(leaf.readers), _shared(leaf))
        elif leaf.trained and leaf.readers and leaf.name not in kept:
            yield Note("leaf", leaf.name, len(leaf.readers), "its value is part of the graph, or no output needs it")


def _shared(leaf: Value) -> str:
    read = ", ".join(leaf.readers[:_NAMED]) + (", …" if len(leaf.readers) > _NAMED else "")
    return (
        f"read by {len(leaf.readers)} nodes, {read}: its gradient is the sum of theirs. An exporter may have merged "
        "equal initialisers; where they are to be trained apart, import through torch.export"
    )
