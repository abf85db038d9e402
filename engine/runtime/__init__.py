"""Runtime: executors, which run plans. This package is for CPUs, with NumPy and machine code; `engine.cuda` for GPUs."""
