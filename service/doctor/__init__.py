"""Whether a server will do well here: what `gradserve doctor` looks at, one thing after the other.

    diagnosis
    software, resources, places, certificate, trial
    examination

What may live here: looking, and saying what to do. What may not: mending.

Files:
    attempts     What a confined process can do all the same: tried in a process of its own, whose answer is a list of
                 these
    certificate  When a certificate ends: asked of a handshake with itself in memory, since Python reads no certificate
                 otherwise
    confinement  Whether workers are confined here, found by confining a process as they are, and having it try
    diagnosis    What was found out about one thing, and what to do about it
    examination  All checks, in the order in which one who reads them wants to know
    places       Files and folders: compiled kernels, state, keys, certificates
    resources    What the machine, or the container, gives a server: processors, memory, descriptors, the time
    software     What computes: Python, NumPy and its BLAS, compiled kernels, a GPU
    trial        The address, and a server of these settings that is asked for a gradient
"""
