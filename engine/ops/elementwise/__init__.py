"""Elementwise ops: arithmetic, comparison, exponentials, circular and special functions, and casts."""
