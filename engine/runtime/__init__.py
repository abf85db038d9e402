"""Runtime: executors, which run plans. This package is for CPUs, by NumPy and native code; `engine.cuda` for GPUs."""
