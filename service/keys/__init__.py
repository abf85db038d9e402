"""Keys: who may call, what each may do, and how much of it.

Files:
    caller      Whoever sends a request, as far as the server knows
    credential  Credential in a request's head: the digest of a key, or what is wrong. No part of a key goes any further
    gate        Asked by both doors before anything of a body is looked at: who makes this request, and may they?
    key_file    The file of keys: hashes in JSON, readable for its owner, and at every moment either the old one or the
                new one
    key_ring    The keys that are good now: those of the file, which is looked at again and again, and the one of the
                environment
    keyholder   Whoever holds a key: who that is to the server, and how much of their share is used up
    record      A key as it is written down: everything but the key
    tenant      Tenant whose share a request comes out of
"""
