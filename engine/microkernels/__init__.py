"""Kernels that add up products: convolutions, matrix products and pools, written for the shapes of one node.

    geometry → a register tile and what feeds it → LLVM IR → recipe

What may live here: how such a kernel is laid out, blocked and written. What may not: ops, graphs, plans; and what
compiles, keeps and calls kernels, which is `engine.loops`'.

Files:
    adding         Adding at indices along an axis: each row of x with its updates, one after the other
    axes           Axes of a result that arrays are stepped along: neighbours as one where all allow it, the last one in
                   parts
    binding        Recipes bound to their memory: the calls that make a result
    by_kernel      Convolution with a kernel of many taps and few windows, as a gradient by the kernel is: sums that are
                   long
    casting        Elements in another dtype, as NumPy's astype: fractions are cut off towards zero, nonzero is true
    channel_sums   Sums over the axes before and behind some, as over images and positions of each channel
    columns        Columns: what the windows over an image see, copied so that the same tap of neighbouring windows lies
                   side by side
    convolution    The recipes of convolution, of its adjoint and of its gradient: which kernels make them, for which
                   sizes
    correlation    Convolution as products of the kernel and columns, of which a panel exists at a time
    depthwise      Convolution of single channels: no tile of numbers and vectors, but vectors along the width of a
                   padded plane
    offsets        Offsets: how far apart what a kernel reads may lie, so that none that it computes wraps around
    packing        Packing: what a tile reads, vector by vector, is laid out so that the vectors of a step lie side by
                   side
    picking        Reading at indices, y[i, j, …] = x[index[i, j, …], j, …] for axis 0, and alike for the others; bits,
                   not numbers
    planes         Kernels that make planes [rows, columns], vector by vector, of what lies around the same place in
                   other planes
    pooling        Pools: of each window of a plane the maximum, where that lies, or the mean
    product        Matrix products: panels of columns, packed where they do not lie well, times tiles of rows
    recipe         A recipe: the kernels that make a result, one after the other, and the memory that they work in
    register_tile  The inner loop of all products: a tile of accumulators in registers, rows of numbers × vectors of
                   columns
    reversing      A dense copy of what runs backwards on its last axis, vector by vector; any bits of a float's width
    routine        A kernel while it is written: whole numbers that fold, loops with carried values, vectors, and masks
                   for their ends
    row_tiles      Rows of numbers times a panel: register tiles over the rows, and what they are added to
    running_sums   Running sums along an axis, by the loop of NumPy's addition: a sum and the next element make the next
                   sum
    searching      The place of an extremum along an axis, int64: the first of equal ones, and the first NaN before all
    shuffles       Vectors whose lanes are chosen from others'
    substitution   Systems with triangular matrices, one right-hand side after the other: each unknown from those before
                   it
    ufunc_calls    Ufuncs called by machine code: their own loops, along one axis at a time, and so with the bits that
                   Python gets
    unpooling      The way back of max pooling: each element of a plane adds up what the windows that it is in have for
                   it
    windows        Windows over planes, side by side in vectors: what each of them sees at one of its taps
"""
