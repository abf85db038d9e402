"""Facades: third-party protocols, served by stored models. Existing calls do the computation.

    web ── route ── job ── worker ── ForeignCall.read_request ── a /v1 call ── OwnRequest.write_answer ── response

The front knows only a protocol's paths and the format of its errors (`protocols`). A facade only translates: it
computes nothing and leaves all decisions to the call.
"""
