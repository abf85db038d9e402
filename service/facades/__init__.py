"""Facades: protocols of others, served by our models. What computes are the calls that exist.

    web ── route ── job ── worker ── ForeignCall.read_request ── a call of ours ── OwnRequest.write_answer ── answer

The front knows a protocol by its paths and the form of its errors (`protocols`), and loads nothing else of it.
What may live here: the words of a protocol, read, written and refused in; names of a model turned into nodes. What may
not: arithmetic, HTTP beyond heads, and anything that a call of ours decides.
"""
