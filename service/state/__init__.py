"""State that a server keeps for its callers between requests: graphs, tensors, and answers that may be asked for again.

Files:
    backup          Backup and restore: the commits of a place as one tar file, and back into an empty place
    changes         Changes of what is kept: each with the table that it is made to, and what is written of it
    commits         The one place that decides what is kept, and in which order
    conditions      Conditions of a request on the version that it would replace, or read (RFC 9110, section 13)
    fence           Fence around what is in memory, at a place that other servers may have taken over meanwhile
    folder          Objects as files of a local folder, each on disk before anyone is told
    graphs          The graphs that callers have registered, as bytes: whoever computes reads them, and the front never
                    does
    holds           Holds: while there is one, a server deletes nothing, so that a backup finds what it has listed
    idempotency     Answers to calls that wrote something, for when the same call comes again: it is answered, and not
                    done twice
    items           Items of a commit, one by one: a value under a key, or that there is none any more
    journal         Journal of what a server has to remember, commit by commit: the interface, and one that remembers
                    nothing
    ledger          Ledger of objects: which hold what is current, what may be deleted, and what is worth moving
                    together
    models          The models that callers have put, as bytes: names for the leaves and the outputs of a graph that is
                    kept
    moving          Commits moved between the forms of a place: those of one journal to shards, or those of shards to
                    one journal
    object_journal  A journal of objects: each batch of commits is one, with the next number, made where nothing is yet
    objects         Object store, where bytes are kept by key: the things that storage is asked for
    opening         A place for state, as the setting `--state` names it, made into a journal: whose it is, and in which
                    format
    ownership       Ownership of a place, to write and to answer what is there: what a journal asks of it, whichever
                    kind it is
    packing         A commit as one object: safetensors, with a checksum over its head and one over the bytes of each
                    item
    reading         Commits as they are read back from their objects, checked; what is wrong with one is told in a
                    sentence
    remote          Objects in S3, Google Cloud Storage or Azure, by obstore: a URL says where, the environment has the
                    credentials
    shards          Shards of a place that several servers share: each is a journal, and a namespace belongs to one of
                    them for ever
    shares          Share that one namespace may fill of what a server keeps
    sole            The claim of whoever has a place alone, by a lock: nothing has to be looked for, and what failed can
                    be undone
    surroundings    Surroundings of a journal: time, sleep, threads and locks. A simulation gives it others
    table           Table of what is kept, by namespace and name: so many things of so many bytes, and some of them only
                    on their way
    tensor_names    Names of resident tensors: what may be one, and what is said where one is none, or means nothing
    tensors         The tensors that callers have stored: their present versions, without their elements
    tenure          The claim to a place that other servers reach as well: one of them writes and answers, whatever
                    becomes of requests
    values          Values that are written down: versions of tensors, answers that may be asked for again, and several
                    as one
    write_behind    Writes that can be seen and are not on disk yet
    writes          Writes of a change, and several of them as one
"""
