"""The fleet: servers and ingresses as applications of Ray Serve, which starts, watches, replaces and counts them.

    application
    node, ingress
    directory, scaling, child

Requests do not go through Serve: they come to HAProxy, and from it to the servers. It is the extra `ray`, and no server
imports this.

What may live here: what Serve runs on its machines. What may not: scheduling, and anything that a request passes.

Files:
    application  Applications of Ray Serve: a server on each machine, and before them an ingress
    child        Child of a replica: `gradserve serve` in a process of its own, whole, and ended with the replica
    directory    Directory of the servers that live, in the key-value store that Ray has
    ingress      Replica of Serve that has an ingress before the servers that live
    kv           Key-value store of Ray, which its head keeps
    node         Replica of Serve that has a server
    scaling      How many servers there should be, from what they have to do
"""
