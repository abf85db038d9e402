"""Machine-made modules: `make generate` writes them."""
