"""The messages of the calls: a file for each call, with its request and, where no other call has the same, its answer.

What may live here: shapes of messages. Which call has which, its definition in `service.calls` says.
"""
