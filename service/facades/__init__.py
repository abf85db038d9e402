"""Facades: protocols of others, served by our models. What computes are the calls that exist.

    web ── route ── job ── worker ── ForeignCall.read_request ── a call of ours ── OwnRequest.write_answer ── answer

The front knows a protocol by its paths and the form of its errors (`protocols`), and loads nothing else of it. A facade
only translates: it computes nothing, and leaves all decisions to the call.
"""
