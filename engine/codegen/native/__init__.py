"""Machine code: what compiles it, keeps it, loads it, binds it to memory, and runs it on threads.

    machine_code → object_file → native_call → runner

What may live here: LLVM, object files, kernels in memory and in a folder, threads that share work. What may not: what
kernels compute.
"""
