"""Diagnosis whether a server will do well here: what `gradserve doctor` looks at, one thing after the other.

    diagnosis
    software, resources, places, certificate, trial
    examination

What may live here: looking, and saying what to do. What may not: mending.
"""
