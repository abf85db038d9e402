"""Diagnosis whether a server will do well here: what `gradserve doctor` looks at, one thing after the other.

    diagnosis
    software, resources, places, certificate, trial
    examination

What may live here: looking, and saying what to do. What may not: mending.

Files:
    attempts     Attempts at what a confined process must not do: made in a process of its own, whose answer is a list
                 of these
    certificate  End of a certificate: asked of a handshake with itself in memory, since Python reads no certificate
                 otherwise
    confinement  Confinement of workers here, found by confining a process as they are, and having it try
    diagnosis    Diagnosis of one thing, and what to do about it
    examination  All checks, in the order in which one who reads them wants to know
    places       Files and folders: compiled kernels, state, keys, certificates
    resources    Resources that the machine, or the container, gives a server: processors, memory, descriptors, the time
    software     Software that computes: Python, NumPy and its BLAS, compiled kernels, a GPU
    trial        The address, and a server of these settings that is asked for a gradient
"""
