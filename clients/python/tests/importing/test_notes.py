"""What an import has to tell."""

from __future__ import annotations

from gradserve_client.importing.notes import Note, Tally


def test_what_several_nodes_say_is_noted_with_how_often() -> None:
    tally = Tally()
    tally.count("Relu", ["relu"])
    tally.count("Norm", ["mean", "sub", "mul", "mul"])
    tally.count("Norm", ["mean", "sub"])
    tally.count("Norm", ["identity"])
    assert [str(note) for note in tally.notes()] == ["Norm (2×): said by up to 4 nodes: mean, sub, 2 mul"]
    assert tally.occurrences == {"Relu": 1, "Norm": 3}
    assert (tally.node_counts("Norm"), tally.node_counts("Relu"), tally.node_counts("Other")) == (
        (1, 4),
        (1, 1),
        (0, 0),
    )


def test_a_note_tells_how_often_where_that_is_more_than_once() -> None:
    assert str(Note("leaf", "w", 1, "is read")) == "w: is read"
    assert str(Note("leaf", "w", 3, "is read")) == "w (3×): is read"
