"""Facades: protocols of others, served by our models. What computes are the calls that exist.

    web ── route ── job ── worker ── ForeignCall.read_request ── a call of ours ── OwnRequest.write_answer ── answer

What may live here: the words of a protocol, read, written and refused in; names of a model turned into nodes. What may
not: arithmetic, HTTP beyond heads, and anything that a call of ours decides.

Files:
    openinference/  Open Inference, also called KServe v2, over HTTP: models with named tensors, as JSON and as bytes
                    behind it
    tesseract/      Tesseract over HTTP: models as functions of named arrays, at a path of its own each, with a document
                    of its own
    umbridge/       UM-Bridge 1.0 over HTTP: models as functions of flat vectors, with gradients, Jacobians and Hessians
                    applied
    elements        Elements of tensors as JSON of other protocols has them: flat, or in lists within lists
    facade          A protocol as a whole: its paths, its calls, and the form of its errors
    foreign_call    The contract of a facade's calls: a request of another protocol comes in, one of ours goes on, and
                    an answer back
    known           The facades that there are
    model           A model as a protocol sees it: inputs and outputs by name and by place, and what is fed beside them
    weighted_sum    A graph that ends in one number: the sum of a node's elements, each times a weight that is fed
"""
