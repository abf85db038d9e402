"""The OpenAPI document as `make docs` makes it: servers have it from a file, and nothing of this is in the wheel."""
