"""Sources of the case files."""
