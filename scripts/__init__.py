"""Scripts that `make docs`, `make bench` and others run, as `python -m scripts.NAME` from the project's root."""
