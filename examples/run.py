"""The parts that all examples share: read the options, find or start a server, stop it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from server import running_server

import gradserve_client as gs

if TYPE_CHECKING:
    import httpx
    from matplotlib.axes import Axes

BUILD = Path(__file__).parents[1] / "build"


def run(work: Callable[..., None], about: str, transport: httpx.BaseTransport | None = None, **sizes: int) -> None:
    """Call `work` with a client and the sizes. Each size is a command line option with this default."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="the address of a running server; default: start one")
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = vars(parser.parse_args())
    url = options.pop("url")
    with nullcontext(url) if url else running_server() as address, gs.Client(address, transport=transport) as client:
        work(client, **options)


@contextmanager
def picture(name: str, **labels: str) -> Iterator[Axes]:
    """Yield axes with a title and labels to plot on. At the end, save the picture in build/ and print its path."""
    from matplotlib import rc_context  # noqa: PLC0415 - takes a second, needed only now
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.set(**labels)
    axes.grid(alpha=0.3)
    yield axes
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
    BUILD.mkdir(exist_ok=True)
    # Keep text as text, and omit date and program, so that the same picture gives the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(BUILD / f"{name}.svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    print(f"picture: {BUILD / f'{name}.svg'}")
