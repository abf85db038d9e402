"""Observation by an operator: counts, for Prometheus; a line for each request, and a trace; a banner at the start.

    histogram → tally → exposition
    answered, lines → request_log
    answered → tracing
    banner

What may live here: counting and writing down. What may not: HTTP, or the data of a request.

Files:
    answered     A request that was answered, as it is written down
    banner       Banner of a server that starts: what it will do, and what it will refuse
    exposition   The counts as Prometheus reads them
    histogram    Counts of durations by size, as Prometheus keeps them, at a fraction of a microsecond each
    lines        Lines to a stream, written by a thread of their own: who reads a log slowly does not slow what is
                 logged
    request_log  A line for each request: who, what, how long, how it ended. Ids and sizes; no data, no query, no header
    tally        Tally of requests. The front counts alone, whatever the number of workers: so it is right over all
    tracing      Traces: each request as a span, with the parts of its work inside, for a collector of OpenTelemetry
"""
