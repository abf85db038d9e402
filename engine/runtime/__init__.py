"""Runtime: executors, which run plans. NumPy and machine code on the CPU are here; a GPU has a room of its own."""
