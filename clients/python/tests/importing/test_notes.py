"""Notes and counts of an import."""

from __future__ import annotations

from gradserve_client.importing.notes import Note, Tally


def test_ops_of_several_nodes_are_noted_with_counts() -> None:
    tally = Tally()
    tally.count("Relu", ["relu"])
    tally.count("Norm", ["mean", "sub", "mul", "mul"])
    tally.count("Norm", ["mean", "sub"])
    tally.count("Norm", ["identity"])
    assert [str(note) for note in tally.notes()] == ["Norm (2×): becomes up to 4 nodes: mean, sub, 2 mul"]
    assert tally.occurrences == {"Relu": 1, "Norm": 3}
    assert (tally.node_counts("Norm"), tally.node_counts("Relu"), tally.node_counts("Other")) == (
        (1, 4),
        (1, 1),
        (0, 0),
    )


def test_note_shows_its_count_if_above_one() -> None:
    assert str(Note("leaf", "w", 1, "is read")) == "w: is read"
    assert str(Note("leaf", "w", 3, "is read")) == "w (3×): is read"
