"""Generation of the OpenAPI document by `make docs`. Servers read the file; this package is not in the wheel."""
