"""The messages of the calls: a file for each call, with its request and, where no other call has the same, its answer.

What may live here: shapes of messages. Which call has which, its definition in `service.calls` says.

Files:
    batch          One graph on many examples
    check          A certificate for gradients
    differentiate  The gradient as a graph
    forward        Values of nodes
    gradients      Values, and the gradients of one node
    hessian        Whole Hessians
    hvp            The Hessian times vectors
    jacobian       Whole Jacobians
    jvp            The Jacobian times tangents
    plan           What a request would take
    vjp            Cotangents times the Jacobian
"""
