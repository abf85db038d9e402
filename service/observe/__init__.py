"""Observability: Prometheus metrics, a log line and a trace span for each request, and the store service.

    tally → exposition, store
    request_log → tracing

No module here depends on HTTP or logs the data of a request.
"""
