"""What `make docs` and `make bench` run, as `python -m scripts.NAME` from the root of the project."""
