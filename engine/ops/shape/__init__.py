"""Movement: ops that re-label, join, cut, reverse and repeat axes."""
