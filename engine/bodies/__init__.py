"""Bodies: functions that ops run, how these are differentiated and batched, and how loops go back over their steps.

What may live here: what ops that run functions share. What may not: such an op, or how a body is run.

Files:
    batched         A body on N examples at once
    bounded         Steps of a loop that has a known length, of which only the first ones are taken: in ops of the
                    registry
    compare         Whole numbers that floats are compared with, as floats: loops of machine code read no others
    entrywise       What takes much memory an element, as a map of elements: some at a time
    hoist           What depends on nothing that changes from step to step, once in front of the loop
    keep            What a loop keeps for its way back, of what each step computes: what is dear to compute again
    lower           Ops that run functions, in terms of those that an executor runs
    merge           Loops that go through the same steps, as one: a rule writes a loop once more, to have what came to
                    each step
    narrow          Ops that run functions without the results that nobody reads, nor what these alone need
    nest            Loops in segments: a scan of scans. Their way back keeps the carries between segments alone
    runs_functions  Base of the ops that run functions, and what is said of operands that do not fit these
    stepwise        Gradients of loops, step by step from the last: a loop the other way round, which computes each step
                    once more
    tidy            A body without `grad` nodes, and without what its results do not need: what is differentiated,
                    batched and run
    way_back        The way back through a body: a body again, of its operands and of cotangents of its results
"""
