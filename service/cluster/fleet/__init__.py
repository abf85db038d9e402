"""Fleet: servers and ingresses as applications of Ray Serve, which starts, watches, replaces and scales them.

    application → replicas → directory, child; scaling

Requests do not pass through Serve: clients connect to HAProxy, and HAProxy to the servers. The fleet is the extra
`ray`, and no server imports this. Serve decides what runs on which machine; this room does not.
"""
