"""From a call of a program to a plan, which knows where every result will lie, and plans kept for the next time.

    compiler → fuse → groups, recompute, layout
        ↘ cache  ↘ plan → storage → arena

A `fused` node is written here, and runs like any other.

What may live here: decisions that are made before anything runs. What may not: arrays of results.

Files:
    arena             Arena: places of results while a plan runs, decided before it does; in one buffer, or in the
                      caller's memory
    blocks            Sums over examples by blocks: how many examples one plan adds up, and the plans of all blocks,
                      which are two
    bodies            Graphs made ready to be planned: optimised, and with kernels that have plans in the places of ops
                      with functions
    cache             Bounded memory of what is costly to make: what was used lately is kept, and each thing is made by
                      one at a time
    compiled_bodies   Bodies of loops as machine code makes them: all that can be fused is, since a step in Python costs
                      more than many
    compiler          From a client's program, the types of its feeds and a call to a plan: written, optimised, planned,
                      and kept
    elements          Ops that a loop would have in their elements, written so: what draws random numbers joins what
                      computes with them
    estimate          Estimates of time, rough ones: enough to tell a call of microseconds from one of seconds before it
                      runs
    fit               A compiled plan of no more memory than the plan whose place it takes: loops that need more are
                      taken apart
    for_loops         Nodes of a body written so that its loops have them: whole numbers as floats where these are
                      computed, rows in a row
    fuse              Fusion: groups of nodes over one iteration space become one loop each, whose inner values never
                      reach memory
    fused             The op that fusion puts in place of a group of nodes: one loop over memory, with several results
    groups            Groups of nodes that become a loop: elementwise ones and reductions over one space, without a
                      detour outside
    heaviest          Kernels that a run misses most: they are compiled first, and used before the rest is there
    kernel_selection  Selection of microkernels: nodes whose ops have some for their shapes, and memory to work in, are
                      made by these
    known_sums        Sums that follow from others: of what is a multiple of a tensor that is added up anyway, or adds
                      nothing to one
    laid_out          Results laid where their readers want them, for cards: products write heads side by side, parts of
                      a whole, biases
    layout            Layout of operands over the rows and columns of a loop, which the loop's strides then say
    leading           Leading-extent analysis: the part of each result, from its beginning, that is ever read; no more
                      need be computed
    looped            The kernels that planning puts in place of ops that run functions: a planned body, run as often as
                      the op says
    many              The plan for many runs of a plan at once: what each is fed, and what each gives, are rows
    microkernel_op    The op that takes the place of a node whose op has kernels for its shapes
    pause             Python's garbage collector paused while a plan is made: every node is kept, and looking for
                      garbage finds none
    plan              A graph made ready to run: linear steps, each knowing where its results lie and what is dead after
                      it
    precision         Plans of a precision: how their products and convolutions may read float32, in the bodies of
                      loops, too
    recompute         Recomputation: what one loop computes again rather than read from another, since memory costs more
                      than arithmetic
    smallest          The plan of least memory: fused, or as the graph is
    spare             Plans that compute again what they have no memory to keep: values of the way there, when the way
                      back comes to them
    split_sums        Sums over several axes in two: over the trailing ones, which joins the loop that computes the
                      addends, then the rest
    step_loop         Bodies of scans that are one loop over elements: a recurrence, which a kernel goes through by
                      itself
    storage           Owners of memory while a graph runs: which results are views, how they lie, and how long each
                      block is needed
    warm              A process's first plans take twice as long as the next ones; this makes them before anybody waits
                      for them
    weightiest        The client's node that most of a graph's memory is for, where most is needed at once: what a
                      refusal names
"""
