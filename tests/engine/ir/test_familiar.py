"""Hints for unknown names: names of other systems and typos get a suggestion, nonsense does not."""

from __future__ import annotations

from typing import Any

import pytest

from engine import Program, Statement, registry
from engine.ir import spellings as suggestions
from engine.ir.attributes import Attr, bind
from engine.ir.errors import BadAttribute, UnknownOp
from engine.ir.op import Op, Registry
from engine.ir.spellings import LOOKED_AT, familiar_attributes, familiar_ops, familiar_systems, plain

OPS = registry().ops

#: names of each of the systems, as people type them
FAMILIAR = {
    "swish": "silu",
    "permute": "transpose",
    "concatenate": "cat",
    "Concat": "cat",
    "clip": "clamp",
    "clip_by_value": "clamp",
    "inverse": "inv",
    "bmm": "matmul",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "view": "reshape",
    "reduce_sum": "sum",
    "ReduceSum": "sum",
    "reduce_mean": "mean",
    "expand_dims": "unsqueeze",
    "amax": "max",
    "amin": "min",
    "take_along_axis": "take_along",
    "LayerNormalization": "layer_norm",
    "softmax_cross_entropy_with_logits": "cross_entropy (with reduction none)",
    "hardtanh": "clamp (with min -1 and max 1)",
    "fmod": "rem",
    "GlobalAveragePool": "mean (over the spatial axes, with keepdims)",
    "moveaxis": "transpose (with all axes in their new order)",
}
#: prefixes, underscores and case are ignored
DECORATED = {
    "torch.permute": "transpose",
    "torch.nn.functional.log_softmax": "log_softmax",
    "F.scaled_dot_product_attention": "attention",
    "jnp.take_along_axis": "take_along",
    "jax.nn.swish": "silu",
    "np.EXPAND_DIMS": "unsqueeze",
    "tf.reduceMean": "mean",
    "nn.Conv2d": "conv2d",
    "aten::mm": "matmul",
    "LogSoftmax": "log_softmax",
    "LeakyRelu": "leaky_relu",
    "add_": "add",
}
TYPOS = {
    "mutmul": "matmul",
    "sofmax": "softmax",
    "oftmax": "softmax",
    "sigmod": "sigmoid",
    "transpsoe": "transpose",
    "reshap": "reshape",
    "relo": "relu",
    "tnh": "tanh",
    "lgo": "log",
    "sinn": "sin",
    "squar": "square",
    "layernrom": "layer_norm",
    "gatehr": "gather",
    "unsqeeze": "unsqueeze",
    "con2d": "conv2d",
    "additon": "add",
    "conv": "conv2d (conv1d and conv3d for other ranks)",
    "concatenat": "cat",
    "reduce_summ": "sum",
}
NONSENSE = (
    "nosuch", "frobnicate", "foo", "bar", "baz", "quux", "xyzzy", "qwerty", "asdf", "hello", "banana", "lorem", "ipsum",
    "test", "op", "x", "node", "my_op", "custom_layer", "unknown_op", "magic", "123", "", "…", ".", "::", "_" * 9,
    "x" * 500,
)  # fmt: skip


@pytest.mark.parametrize(("name", "meant"), [*FAMILIAR.items(), *DECORATED.items(), *TYPOS.items()])
def test_unknown_op_suggests_the_intended_name(name: str, meant: str) -> None:
    with pytest.raises(UnknownOp) as caught:
        registry().get(name)
    assert caught.value.detail == f"there is no op called “{name}”; did you mean {meant}?"
    assert registry().hint(name) == f"did you mean {meant}?"


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_gets_no_hint(name: str) -> None:
    assert registry().hint(name) is None
    with pytest.raises(UnknownOp, match=r"; GET /v1/ops lists all ops$"):
        registry().get(name)


def test_every_familiar_name_maps_to_an_op() -> None:
    assert not [familiar for familiar in familiar_ops() if familiar.op not in OPS]


def test_familiar_names_are_not_spellings_of_our_ops() -> None:
    ours = {plain(spelling) for op in OPS.values() for spelling in (op.name, *op.aliases)}
    assert not [familiar for familiar in familiar_ops() if plain(familiar.name) in ours]


def test_every_familiar_name_has_listed_systems() -> None:
    assert not [f for f in familiar_ops() if not f.systems or not set(f.systems) <= set(familiar_systems())]


def test_notes_are_short_phrases() -> None:
    assert not [f for f in familiar_ops() if len(f.note) > 90 or f.note.endswith(".")]


def test_familiar_name_has_one_meaning() -> None:
    meanings: dict[str, set[tuple[str, str]]] = {}
    for name, op, _, note in familiar_ops():
        meanings.setdefault(plain(name), set()).add((op, note))
    assert not {name: meant for name, meant in meanings.items() if len(meant) > 1}


def test_every_system_has_names_for_the_common_ops() -> None:
    for system in familiar_systems():
        assert sum(system in familiar.systems for familiar in familiar_ops()) > 40


def test_only_registered_ops_are_suggested() -> None:
    small = Registry([OPS["sum"], OPS["relu"]])
    assert small.hint("reduce_sum") == "did you mean sum?"
    assert small.hint("swish") is None


# ---------------------------------------------------------------- attributes


def sentence(op: str, **attrs: Any) -> str:
    with pytest.raises(BadAttribute) as caught:
        bind(OPS[op].attrs, attrs)
    return caught.value.detail


@pytest.mark.parametrize(
    ("op", "theirs", "ours"),
    [
        ("sum", "axis", "axes"),
        ("sum", "dim", "axes"),
        ("sum", "keepdim", "keepdims"),
        ("sum", "keep_dims", "keepdims"),
        ("softmax", "dim", "axis"),
        ("softmax", "axes", "axis"),
        ("conv2d", "strides", "stride"),
        ("conv2d", "pads", "padding"),
        ("conv2d", "dilations", "dilation"),
        ("conv2d", "group", "groups"),
        ("max_pool2d", "kernel_shape", "kernel_size"),
        ("layer_norm", "epsilon", "eps"),
        ("layer_norm", "normalized_shape", "axes"),
        ("transpose", "perm", "axes"),
        ("cast", "to", "dtype"),
        ("leaky_relu", "negative_slope", "alpha"),
        ("one_hot", "num_classes", "classes"),
        ("full", "fill_value", "fill"),
        ("var", "correction", "ddof"),
        ("tril", "diagonal", "offset"),
        ("reshape", "shapes", "shape"),
        ("gelu", "Approximate", "approximate"),
    ],
)
def test_familiar_attribute_suggests_ours(op: str, theirs: str, ours: str) -> None:
    assert f"there is no attribute {theirs} here" in sentence(op, **{theirs: 1})
    assert sentence(op, **{theirs: 1}).endswith(f"; did you mean {ours}?")


@pytest.mark.parametrize(("op", "name"), [("relu", "dim"), ("abs", "axis"), ("sum", "colour"), ("matmul", "epsilon")])
def test_attribute_that_the_op_lacks_is_not_suggested(op: str, name: str) -> None:
    assert "did you mean" not in sentence(op, **{name: 1})


def test_familiar_attributes_map_to_registered_ones() -> None:
    assert {name for names in familiar_attributes().values() for name in names} <= set(registry().attributes)


# ---------------------------------------------------------------- long names


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all names whose letters were compared."""
    lengths: list[int] = []
    edits = suggestions._edit_distance
    monkeypatch.setattr(suggestions, "_edit_distance", lambda a, b: lengths.extend((len(a), len(b))) or edits(a, b))
    return lengths


LONG = "relu" * (2 << 20)


def test_long_name_is_truncated_before_comparison(compared: list[int]) -> None:
    with pytest.raises(UnknownOp) as caught:
        registry().get(LONG)
    assert len(caught.value.detail) < 200
    assert len(caught.value.got or "") <= LOOKED_AT
    suggestions.nearest(LONG, [LONG, LONG[:LOOKED_AT]])
    assert max(compared) == LOOKED_AT


def test_long_attribute_name_is_truncated_before_comparison(compared: list[int]) -> None:
    declared = {LONG[: LOOKED_AT - 1]: Attr("int", 0), "axes": Attr("ints", None)}
    with pytest.raises(BadAttribute) as caught:
        bind(declared, {LONG: 1})
    assert len(caught.value.detail) < 300
    assert len(caught.value.got or "") <= LOOKED_AT
    assert max(compared) == LOOKED_AT


def test_plain_truncates_long_names() -> None:
    assert plain(LONG) == LONG[:LOOKED_AT]


class Counted(str):
    """A string that counts how often it is formatted."""

    __slots__ = ()
    formatted = 0

    def __repr__(self) -> str:
        Counted.formatted += 1
        return super().__repr__()

    __str__ = __repr__


@pytest.mark.parametrize("value", [LONG, [LONG], [[LONG]], [{LONG: LONG}], {LONG: 1}, (LONG, LONG), [True, "x"]])
def test_bad_value_is_shown_without_formatting_all_of_it(value: Any) -> None:
    def watched(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(watched, value))
        return Counted(value) if isinstance(value, str) else value

    Counted.formatted = 0
    with pytest.raises(BadAttribute) as caught:
        bind({"axes": Attr("ints")}, {"axes": watched(value)})
    assert Counted.formatted == 0
    assert len(caught.value.detail) < 200
    assert len(caught.value.got or "") <= LOOKED_AT


def test_list_is_shown_as_json() -> None:
    with pytest.raises(BadAttribute, match=r"but is \[true, “x”, \[…\], 1.5\]$"):
        bind({"axes": Attr("ints")}, {"axes": [True, "x", [1], 1.5]})


def test_hint_is_reported_with_its_node() -> None:
    op: Op = OPS["sum"]
    with pytest.raises(BadAttribute) as caught:
        Program(registry(), [Statement(OPS["input"]), Statement(op, (0,), {"dim": 1}, "total")])
    assert caught.value.detail == (
        "node 1 (sum “total”): there is no attribute dim here (known: axes, keepdims); did you mean axes?"
    )
