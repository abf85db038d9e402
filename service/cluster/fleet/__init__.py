"""The fleet: servers and ingresses as applications of Ray Serve, which starts, watches, replaces and counts them.

    application → replicas → directory, child; scaling

Requests do not go through Serve: they come to HAProxy, and from it to the servers. It is the extra `ray`, and no server
imports this. Serve schedules what runs on its machines; this room does not.
"""
