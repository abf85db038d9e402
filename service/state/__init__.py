"""What a server keeps for its callers between requests: graphs, tensors, and answers that may be asked for again.

Files:
    backup          Backup and restore: the commits of a place as one tar file, and back into an empty place
    changes         What can be changed of what is kept: each change with the table that it is made to, and what is
                    written of it
    commits         The one place that decides what is kept, and in which order
    conditions      What a request demands of the version that it would replace, or read (RFC 9110, section 13)
    fence           Whether what is in memory may be answered, at a place that other servers may have taken over
                    meanwhile
    folder          Objects as files of a local folder, each on disk before anyone is told
    graphs          The graphs that callers have registered, as bytes: whoever computes reads them, and the front never
                    does
    holds           Holds: while there is one, a server deletes nothing, so that a backup finds what it has listed
    idempotency     Answers to calls that wrote something, for when the same call comes again: it is answered, and not
                    done twice
    items           What a commit says, one by one: a value under a key, or that there is none any more
    journal         What a server has to remember, written down commit by commit: the interface, and one that remembers
                    nothing
    ledger          Which object holds what is current: what may be deleted, and what is worth moving together
    object_journal  A journal of objects: each batch of commits is one, with the next number, made where nothing is yet
    objects         Where bytes are kept by key: the things that storage is asked for
    opening         A place for state, as the setting `--state` names it, made into a journal: whose it is, and in which
                    format
    ownership       Who may write to a place, and answer what is there: what a journal asks of it, whichever kind it is
    packing         A commit as one object: safetensors, with a checksum over its head and one over the bytes of each
                    item
    reading         Commits as they are read back from their objects, checked; what is wrong with one is told in a
                    sentence
    remote          Objects in S3, Google Cloud Storage or Azure, by obstore: a URL says where, the environment has the
                    credentials
    shares          How much of what a server keeps one namespace may fill
    sole            The claim of whoever has a place alone, by a lock: nothing has to be looked for, and what failed can
                    be undone
    surroundings    What a journal has of the system that it runs on: time, sleep, threads and locks. A simulation gives
                    it others
    table           What is kept, by namespace and name: so many things of so many bytes at most, and some of them only
                    on their way
    tensor_names    Names of resident tensors: what may be one, and what is said where one is none, or means nothing
    tensors         The tensors that callers have stored: their present versions, without their elements
    tenure          The claim to a place that other servers reach as well: one of them writes and answers, whatever
                    becomes of requests
    values          What is written down: versions of tensors, answers that may be asked for again, and several of both
                    as one
    write_behind    What can be seen and is not on disk yet
    writes          What is written down of a change, and several of them as one
"""
