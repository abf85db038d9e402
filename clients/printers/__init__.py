"""The typed op methods, as each language writes them."""
