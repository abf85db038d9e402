"""Code generators for the typed op methods, one per language."""
