"""A report from a machine with a card: `make card-report MINUTES=20`, in phases, each of which may run by itself.

    phases → figures (docs/card_report.json) → page (docs/gpu.md)

Files:
    __main__  The command: phases one after the other, within so many minutes, a line for each
    closed    Load over HTTP: clients that each send as soon as they have their answer
    cold      Machine code of a workload made with nothing kept: how long it takes
    figures   Figures of a card as JSON: what was measured, on what, and what was not run, for which reason
    page      The measured part of docs/gpu.md, from the figures
    phases    What is measured: tests, sanitizer, benchmarks with peers, requests, compiling
"""
