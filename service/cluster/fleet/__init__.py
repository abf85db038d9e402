"""The fleet: servers and ingresses as applications of Ray Serve, which starts, watches, replaces and counts them.

    application
    node, ingress
    directory, scaling, child

Requests do not go through Serve: they come to HAProxy, and from it to the servers. It is the extra `ray`, and no server
imports this.

What may live here: what Serve runs on its machines. What may not: scheduling, and anything that a request passes.
"""
