"""Machine code: what compiles it, keeps it, loads it, binds it to memory, and runs it on threads.

    machine_code → object_file → executable → native_call → runner

What may live here: LLVM, object files, kernels in memory and in a folder, threads that share work. What may not: what
kernels compute.

Files:
    bounds           Bounds of the buffers of kernels, stated by whoever binds them: for a build that compares each
                     access
    calls            Calls in a row, one by one or as one call
    executable       Memory that is executable and not writable: written first, then turned over, never both at once
    fallback         The fallback of a kernel that is not there, or has met what it has no formula for: other calls
                     compute the same
    kernel_errors    Errors on the way from a loop to its machine code: never a reason to fail, since NumPy computes the
                     same
    kernel_folder    Compiled kernels in a folder: read back as they were written, by the user who wrote them, or not at
                     all
    kernel_store     Compiled kernels by key, in memory and in a folder: what one process has compiled, the next one
                     loads
    machine_code     LLVM IR → machine code of this processor, or of a named one, as an object file. LLVM is loaded when
                     first used
    native_call      A kernel of machine code bound to its memory: what a plan calls, and what a runner makes of many
    object_file      Loading object files: those of x86-64 and ELF by hand, in a tenth of a millisecond and without
                     LLVM; others by LLVM
    processor        Name and features of this processor, as the system describes it: in a tenth of a millisecond, and
                     without LLVM
    reasons          Reasons for what is done in another way than it might be: one line of the log for each, and no more
                     than a few
    refused_kernels  What could not be made, by key, and why: it is not tried again, so that a plan runs one way
    runner           Threads of a process that help whoever runs a region: asleep in machine code, without the
                     interpreter's lock
    runner_layout    Layout of what a runner reads and its threads share: words of steps, of what ends a run, of the
                     pool, of loops
    sharing          Work shared among threads: chunks of it, claimed by whichever is free
    ufunc_loops      Inner loops of ufuncs, NumPy's and SciPy's: what they call for an axis, found where their public
                     struct says
"""
