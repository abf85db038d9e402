"""Messages of the calls: one file per call, with its request and, unless it shares that of another call, its response.

`service.api.calls` describes the calls, with the messages of each.
"""
