"""Reading at indices on a card: a thread for each element of the result, which reads one index and one element.

An index outside of the axis reads nothing: a zero is written, and it is noted at the flag of the node.
"""

from __future__ import annotations

from typing import Any, Final

from engine.cards.card_recipe import CardPlace, CardRecipe
from engine.cards.card_terms import CardTerms
from engine.cards.card_text import are_addressable, by_items, card_text, is_wide, unravelled
from engine.cards.index_sums import INDICES
from engine.graph.dtypes import FLOATS
from engine.graph.tensor_type import TensorType
from engine.microkernels.axes import merged_axes

#: entries of a table before the axes
_READ_HEAD: Final = 8

_KERNEL: Final = """\
typedef {index} X;
KERNEL read_at(GIVEN) {{
const long long* const table = TABLE;
EACH_ITEM(item, table[4]) {{
const char* x = (const char*)table[0]; const char* index = (const char*)table[1];
{places}
const long long at = (long long)*(const X*)index;
const int inside = at >= 0 && at < table[5];
((E*)table[2])[item] = inside ? *(const E*)(x + at * table[6]) : (E)0;
if (!inside) *(int*)table[3] = (int)table[7];
}}
}}
"""


def gather_card_recipe(
    terms: CardTerms,  # noqa: ARG001 - it works in no memory
    out: TensorType,
    x: TensorType,
    *index: TensorType,
    axis: int,
    **attrs: Any,  # noqa: ARG001 - of the op
) -> CardRecipe | None:
    """Elements of operand 0 at the indices along an axis, operand 1; an index outside is noted as 2.

    None for numbers that are no floats, of a list of indices, and where offsets do not fit their words.
    """
    if len(index) != 1 or out.dtype.name not in FLOATS:
        return None
    (of,) = index
    kind = of.dtype.itemsize, of.dtype.kind == "i"
    reach = tuple(x.shape[a] if a == axis else n for a, n in enumerate(out.shape))
    steps = tuple(0 if a == axis else step for a, step in enumerate(x.strides))
    if kind not in INDICES or not all(
        are_addressable(list(zip(extents, type.strides, strict=True)))
        for extents, type in ((reach, x), (out.shape, of), (out.shape, out))
    ):
        return None
    axes = merged_axes(out.shape, [of.strides, steps])
    count = len(axes)
    entries = _READ_HEAD + 3 * count
    places = unravelled(
        "item", range(_READ_HEAD, _READ_HEAD + count), {"index": _READ_HEAD + count, "x": _READ_HEAD + 2 * count}
    )
    kernel = _KERNEL.format(index=INDICES[kind], places=places)
    text = card_text(out.dtype.name, entries, kernel, is_wide=is_wide(out.size))
    if not out.size:
        return CardRecipe(())
    pointers = (CardPlace("operand", 0), CardPlace("operand", 1), CardPlace("result", 0), CardPlace("flag"))
    table = (*pointers, out.size, x.shape[axis], x.strides[axis], 2)
    lying = (*(n for n, _ in axes), *(s[k] for k in range(2) for _, s in axes))
    return CardRecipe((by_items("read_at", out.size, entries, *table, *lying),), text)
