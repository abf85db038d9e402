"""Graphs: what they are made of, what they say as text, and when they are well-formed.

    dtypes, errors, near, familiar, truth, run_tier, precision → tensor_type, faults → kinds, sample, limits
    → attributes → op → registry → ir → program → identity
                    ↘ text → verify

What may live here: the terms in which everything else is written. What may not: ops, derivatives, execution, or an
import from another room of the engine.

Files:
    kinds/        Kinds of attributes: one class a kind. Adding a kind is adding a file here and nothing else
    alignment     Alignment of arrays: they begin at multiples of what is a line of the cache, and the widest vector
    attributes    Attributes of ops: their declarations, and the check of what a client sent
    before_int16  Graphs of opset 1 have no int16: there, int8 with uint8 is int32, whatever the dtypes are since
    body          A body: a function for operands of given types, as ops run it, differentiate it and batch it
    by_device     Kernels found in a table by device: one that all array modules run, and others where a device has a
                  better one
    copying       Copies of views: NumPy's own, and for what lies across its rows, one in strips, so that lines stay in
                  the cache
    dtypes        The dtypes of the opset: one table, and what types, attributes, ops, messages and bodies read in it
    errors        Errors: all that can be wrong with a graph, as the client will read it
    familiar      Names that other systems have for ops and attributes, to suggest ours: `familiar_names.toml`, read
                  when needed
    faults        All that is wrong with something in one answer, instead of one thing at a time
    identity      Identity of a graph: a canonical text, and its hash
    inference     Inference: the canonical attributes of an op on operands of some types, its result's types, and what
                  it takes
    ir            The intermediate representation: typed nodes in a list, each referring to earlier ones only
    limits        Limits of one request: budgets that are compared before anything is allocated, and its time
    memory        Memory of what rules make of types and attributes, for the whole process: bounded, and exact about
                  numbers
    near          The name that a person may have meant: the nearest of those that there are, or none
    op            The contract of an op: what one definition states so that everything else can be derived from it
    opset         Versions of the opset: a graph says which it is in, and has all ops, attributes and dtypes of that and
                  older ones
    precision     Precision: how products and convolutions may read float32 operands on a card. Formats, from the most
                  exact on
    program       A client's graph as it was written: ops and references checked, types not yet known
    registry      The opset as one object: ops by all their names, and one type for each attribute name
    rewrite_rule  A rule of simplification, as the op declares it whose nodes it rewrites
    run_context   Context of a run: what a kernel is given beside its arrays
    run_report    Report of a run: what an executor tells of it to those who asked for it
    run_tier      Share of a run that compiled kernels did: as it is told to those who asked for the run
    sample        Sample operands: what an op states about its own domain, and what the contract tests are derived from
    statement     A statement: one node as a client wrote it, and what can be said of it before types are known
    tensor_type   Shapes and dtypes: the static type of every value, and how types combine
    text          Graphs as text, and back: one line a node, for tests of transforms and passes, and for people
    truth         Truths: what is known of an op from elsewhere. Neither its kernel nor its gradient rule has a part in
                  them
    verify        A verifier, as compilers run it between their passes: is this a graph that the rest of the engine may
                  believe?
    written       Statements as they are written into a builder: where each went, and those that say what one before has
                  said
"""
