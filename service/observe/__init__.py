"""What an operator sees: counts, for Prometheus; a line for each request; what a server says of itself when it starts.

    histogram → tally → exposition
    lines → request_log
    banner

What may live here: counting and writing down. What may not: HTTP, or the data of a request.
"""
