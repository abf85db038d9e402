"""Names of writes, and commits made of them."""

from __future__ import annotations

from collections.abc import Iterable

from service.state.values import AnswerRecord, Commit, GraphWrite, ModelWrite, TensorWrite

Write = TensorWrite | GraphWrite | AnswerRecord | ModelWrite
#: what a write is of, in which namespace, under which name
Name = tuple[type[Write], str, str]


def name_of(write: Write) -> Name:
    """Return the name that no other write may concern at the same time."""
    if isinstance(write, TensorWrite | ModelWrite):
        return type(write), write.namespace, write.name
    if isinstance(write, GraphWrite):
        return GraphWrite, write.namespace, write.graph_id
    return AnswerRecord, write.namespace, write.key


def commit_of(writes: Iterable[Write]) -> Commit:
    """Make one commit of these writes."""
    tensors: list[TensorWrite] = []
    graphs: list[GraphWrite] = []
    answers: list[AnswerRecord] = []
    models: list[ModelWrite] = []
    for write in writes:
        if isinstance(write, TensorWrite):
            tensors.append(write)
        elif isinstance(write, GraphWrite):
            graphs.append(write)
        elif isinstance(write, ModelWrite):
            models.append(write)
        else:
            answers.append(write)
    return Commit(tensors, graphs, answers, models)
