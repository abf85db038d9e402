"""Executors, which run a plan: NumPy on the CPU, CuPy on a GPU. One loop, two array modules."""
