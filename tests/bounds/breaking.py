"""Off-by-one extents, each in another place, and the groups of the corpus that must detect them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from engine.codegen.kernels import compiled
from engine.codegen.kernels.assembly import Assembly
from engine.codegen.kernels.llvm_text import KernelText
from engine.codegen.kernels.program import TableEntry
from engine.codegen.microkernels import product
from engine.codegen.microkernels.correlation import Columns
from engine.codegen.microkernels.routine import Routine
from engine.codegen.microkernels.windows import ColumnReader
from engine.compiler import recipes
from engine.runtime import native_loops

#: from the right function to its replacement
Change = Callable[[Callable[..., Any]], Callable[..., Any]]


class Break(NamedTuple):
    """The replacement of a function of a module or a class, for the lifetime of the process.

    Guarded pages detect it, too, unless it is only `stated`.
    """

    owner: Any
    name: str
    change: Change
    groups: Sequence[str]
    stated: bool = False

    def install(self) -> None:
        """Install the replacement."""
        right = vars(self.owner)[self.name]
        if isinstance(right, property):
            assert right.fget is not None
            setattr(self.owner, self.name, property(self.change(right.fget)))
        else:
            setattr(self.owner, self.name, self.change(right))


def _tables_with_more(*entries: TableEntry) -> Change:
    """Add one to entries of the tables that a function returns, or writes into its first argument."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any) -> Any:
            returned = right(*given)
            table = given[0] if returned is None else returned
            table[..., [*entries]] += 1
            return returned

        return changed

    return change


def _less(right: Callable[..., int]) -> Callable[..., int]:
    return lambda *given: max(0, right(*given) - 1)


def _less_by_a_number(right: Callable[..., int]) -> Callable[..., int]:
    return lambda writer: right(writer) - writer.geometry.itemsize


def _of_more(field: str) -> Change:
    """Call the function with a geometry with one more of something."""

    def change(right: Callable[..., Any]) -> Callable[..., Any]:
        def changed(geometry: Any, *rest: Any) -> Any:
            more = {field: getattr(geometry, field) + 1}
            return right(
                geometry._replace(**more)
                if hasattr(geometry, "_replace")
                else type(geometry)(**(vars(geometry) | more)),
                *rest,
            )

        return changed

    return change


def _longer_tail(right: Callable[..., str]) -> Callable[..., str]:
    def value(to: Assembly, text: str, name: str = "") -> str:
        if text == "trunc i64 %tail to i32":
            text = f"trunc i64 {right(to, 'add i64 %tail, 1')} to i32"
        return right(to, text, name)

    return value


def _wider_mask(right: Callable[..., str]) -> Callable[..., str]:
    return lambda to, count: right(to, to.add(count, 1))


def _longer_run(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda itemsize, shape, strides: right(itemsize, (*shape[:-1], shape[-1] + 1), strides)


def _wider_plane(right: Callable[..., Any]) -> Callable[..., Any]:
    def masks(reader: ColumnReader, start: Any) -> Any:
        rows, columns = reader.geometry.extents
        return right(
            ColumnReader(reader.ir, reader.geometry._replace(extents=(rows, columns + 1)), reader.outside), start
        )

    return masks


def _more_images(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda columns, *given: right(columns._replace(images=columns.images + 1), *given)


def _reads_on(right: Callable[..., None]) -> Callable[..., None]:
    def read_table(text: KernelText) -> None:
        right(text)
        text.memory.word(text.layout.scratch + 1, "i64", "%beyond")

    return read_table


#: breaks by the extent that is off by one
BREAKS: Final[dict[str, Break]] = {
    "rows of a loop": Break(compiled, "put_space", _tables_with_more(TableEntry.ROWS), ["kernels of max"]),
    "last row of a loop": Break(compiled, "put_space", _tables_with_more(TableEntry.LENGTH), ["far arguments"]),
    "row of a recurrence": Break(
        native_loops,
        "recurrence_table",
        _tables_with_more(TableEntry.COLUMNS, TableEntry.LENGTH),
        ["loops of elements"],
    ),
    "tail vector": Break(Assembly, "value", _longer_tail, ["kernels of softmax"]),
    "scratch of a thread": Break(compiled, "_scratch_elements", _less, ["kernels of softmax"]),
    "table": Break(KernelText, "_read_table", _reads_on, ["kernels of max"], stated=True),
    "mask": Break(Routine, "below", _wider_mask, ["kernels of conv1d"]),
    "rows of a product": Break(recipes, "product_kernel", _of_more("rows"), ["kernels of matmul"]),
    "steps of a product": Break(recipes, "product_kernel", _of_more("inner"), ["kernels of matmul"]),
    "packed panel": Break(product._Writer, "panel_bytes", _less_by_a_number, ["kernels of matmul"], stated=True),
    "plane of a pool": Break(ColumnReader, "masks", _wider_plane, ["kernels of avg_pool2d"]),
    "windows of a convolution": Break(Columns, "segments", _more_images, ["kernels of conv2d"]),
    "extent of an index": Break(recipes, "gather", _of_more("extent"), ["indices outside"]),
    "extent that is added to": Break(recipes, "scatter_add", _of_more("extent"), ["indices outside"]),
    "run backwards": Break(recipes, "reversed_copy", _longer_run, ["kernels of flip"]),
    "inner axis of a sum": Break(recipes, "channel_sums", _of_more("inner"), ["kernels of sum"]),
}
