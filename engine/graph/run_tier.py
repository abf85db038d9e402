"""Share of a run that compiled kernels did."""

from __future__ import annotations

from typing import Final, Literal

RunTier = Literal["uncompiled", "partly_compiled", "compiled"]

#: none: NumPy does all of it, or CuPy
UNCOMPILED: Final = "uncompiled"
#: those that save the most time; the others are not there yet, or could not be had
PARTLY_COMPILED: Final = "partly_compiled"
#: all that there are for it
COMPILED: Final = "compiled"
