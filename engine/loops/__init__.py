"""The loop language: scalar programs swept over rows of columns, and the printers that make kernels of them.

    program → schedule → printers → kernels

What may live here: the language, its printers, and what binds what they print. What may not: ops, graphs, plans; what
runs machine code, which is `engine.native`'s; and how functions are expanded, which is `engine.functions`'.

Files:
    array_functions    Functions of the loop language that NumPy does not have, on whole arrays: of NumPy block by
                       block, in float64
    assembly           LLVM IR while it is written: values, labels and loops of a function, and the module about it
    block_program      A loop prepared for blocks of NumPy arrays: its calls by slots, which every block fills with
                       arrays of its own
    blocks             The NumPy printer: a loop as calls of ufuncs on blocks that stay in a core's own cache
    bounds_writer      A build of kernels for tests: each access is compared with the extent of its buffer before it is
                       made
    c_expressions      Single instructions of a loop as expressions of C, and what they are written in
    c_loop             Parts of every text of C for a loop: its arrays in a row, its scalars, and what a sweep computes
                       of an element
    c_recurrence       Parts of every text of C for a recurrence: what a kernel goes through for one element, all steps
                       of it
    compiled           Compiled loops: machine code as a kernel, and kernels bound to their memory, ready to be called
    cuda_launch        The kernels of a loop bound to their memory: what is to be launched, on how many threads, with
                       which table
    cuda_parts         A loop divided for a card: what goes row by row, and sums over rows, which go column by column
    cuda_recurrence    A recurrence on a card: one kernel, whose threads each go through all steps of an element
    cuda_text          A loop as CUDA C: the same lanes and the same order of sums as on a processor, and so the same
                       bits
    elements           A formula for one element as a kernel of its own: on arrays of NumPy block by block, on those of
                       CuPy whole
    extremes           minimum and maximum as every compiled kernel has them: one comparison, and a look for NaN where
                       there may be one
    gamma_arrays       log |Γ(x)| and its derivatives by SciPy, mended where that is wrong beyond a few units in the
                       last place
    llvm_instructions  Single instructions of a loop as LLVM IR: on scalars (one of it), or on vectors of explicit width
    llvm_text          A loop as LLVM IR: blocks, rows, sweeps of explicit vectors, and a masked sweep over what is left
                       of a row
    memory             Accesses of kernels to memory: every load and every store of theirs is printed here
    normal_arrays      Inverse error function and logarithm of the normal distribution function by SciPy, mended where
                       it is wrong
    part_sums          Adding up the parts that the blocks of a loop made of its sums: by loops, in an order that is
                       always the same
    program            The loop language: a scalar program in single assignment, swept over rows of columns
    ptx_recurrence     A recurrence as LLVM IR for a card: the kernel of `cuda_recurrence`, a thread for all steps of an
                       element
    ptx_sums           What adds up the results of a loop on a card, as LLVM IR: the kernels of `cuda_text.SUMS`, in the
                       same order
    ptx_text           A loop as LLVM IR for a card, nvptx64-nvidia-cuda: the kernels, lanes and order of `cuda_text`,
                       and so the same bits
    ptx_threads        Threads of a card in LLVM IR: their numbers, what they see of one another within a warp, and the
                       module of kernels
    recurrence         A loop that is gone through step by step: what a step gives for a carry is what the next one is
                       given
    recurrence_text    A recurrence as LLVM IR: the rows and vectors of a kernel of its step, and inside of each vector
                       all steps
    registers          Registers of a loop: where NumPy keeps its scalars while it computes a block, and which of them
                       share an array
    row_blocks         Blocks in which NumPy goes through a space: of whole rows, that fit in a core's own cache
    schedule           The passes of a loop: what each sweep over a row computes, keeps and reads back. Every printer
                       follows them
    special            Error functions on arrays of NumPy, the libraries of special functions, and how they are gone
                       through in blocks
    table              Table of whole numbers in which a kernel finds its sizes, addresses and strides, alike for all
                       that is compiled
    threefry_arrays    Threefry-2x32 on arrays: two words of 32 bits, mixed under a key of two others, and uniform
                       numbers made of them
    ufuncs             The primitives of the loop language as NumPy and CuPy have them
    whole              A loop on whole arrays of any array module: what a card runs where it has no kernel of the loop
    within_range       Compiled kernels whose sin and cos met an argument that is out of range: computed again by other
                       means
"""
