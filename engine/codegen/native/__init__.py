"""Machine code: compile LLVM IR, cache and load object files, bind kernels to memory, and run them on threads.

    machine_code → object file → native_call → runner

This package knows LLVM, object files, the kernel cache in memory and on disk, and the thread pool. It does not know the
computation inside a kernel.
"""
