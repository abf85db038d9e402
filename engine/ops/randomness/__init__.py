"""Random numbers: draws from a key, and the generator that they come from."""
