"""Observation by an operator: counts, for Prometheus; a line for each request, and a trace; a banner at the start.

    histogram → tally → exposition
    answered, lines → request_log
    answered → tracing
    banner

What may live here: counting and writing down. What may not: HTTP, or the data of a request.
"""
