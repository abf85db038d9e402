"""Indexing: ops that read, add and write at indices, slices and masks."""
