"""Observation: metrics for Prometheus, a line and a trace for each request, and the store service.

    tally → exposition, store
    request_log → tracing

No module here knows HTTP, or logs the data of a request.
"""
