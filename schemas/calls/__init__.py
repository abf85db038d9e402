"""The messages of the calls: a file for each call, with its request and, where no other call has the same, its answer.

What may live here: shapes of messages. The description in `service.api.calls` says which call has which.
"""
