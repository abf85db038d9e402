"""Growth of memory: the slope over the second half of a run, with its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

BLOCKS = 20
CONFIDENCE = 0.99
FEWEST = 2 * BLOCKS


@dataclass(frozen=True)
class Trend:
    """The growth of memory in the second half in bytes, its 99 % interval, and the median level."""

    growth: float
    low: float
    high: float
    level: float

    def is_flat(self, floor: float) -> bool:
        """Whether the growth is indistinguishable from zero, or too small to matter.

        `floor` is the number of bytes by which an allocator may still grow, however long a run has been.
        """
        return self.low <= floor

    def __str__(self) -> str:
        mib = [part / (1 << 20) for part in (self.growth, self.low, self.high, self.level)]
        return "{:+.2f} MiB in the second half (99 % interval {:+.2f} to {:+.2f}) of {:.0f} MiB".format(*mib)


def trend(samples: Sequence[float]) -> Trend:
    """Estimate the trend of samples at equal intervals of work. Raises ValueError if there are too few.

    The second half is cut into 20 blocks, and a line is fitted to their medians by least squares. Neighbouring blocks
    are correlated, since allocated memory stays, so the standard error of the line is that of fewer independent blocks:
    n (1 − r) / (1 + r), and at least six, where r is the correlation of neighbouring residuals.
    """
    half = np.asarray(samples[len(samples) // 2 :], float)
    if len(half) < FEWEST:
        raise ValueError(f"{len(half)} samples in the second half; {FEWEST} are needed")
    medians = np.array([np.median(block) for block in np.array_split(half, BLOCKS)])
    x = np.linspace(0.0, 1.0, BLOCKS)
    slope, start = np.polyfit(x, medians, 1)
    error = _error(x, medians - (start + slope * x))
    return Trend(slope, slope - error, slope + error, float(np.median(half)))


def _error(x: np.ndarray, residuals: np.ndarray) -> float:
    """Half the width of the interval of the slope."""
    spread = float(residuals @ residuals)
    if spread == 0.0:
        return 0.0
    alike = max(0.0, float(residuals[1:] @ residuals[:-1]) / spread)
    count = max(6.0, BLOCKS * (1 - alike) / (1 + alike))
    variance = spread / (count - 2) / float(((x - x.mean()) ** 2).sum() * count / BLOCKS)
    return float(stdtrit(count - 2, (1 + CONFIDENCE) / 2) * variance**0.5)
