"""The pool of workers: jobs are admitted, queued, sent, stopped in time, and done again where a worker has ended.

    process_pool → lanes → supervisor → process

What may live here: admission, queues, turns, deadlines, the supervision of workers. What may not: HTTP, and the work.

Files:
    accounts      Callers as the pool knows them: what each has in work, and whether what it calls short has been short
                  lately
    admission     Admission: more jobs than are held, or what cannot be in time, is turned away before anything is done
                  for it
    cost_model    Estimate model of jobs: what their plans say, corrected by what was measured
    footprint     Footprint of the processes of a server once their caches are full: by the settings, and by what was
                  measured
    incidents     Workers that were ended by a signal: by which, at which plan; and the plans that are to run without
                  kernels for it
    job_state     The states of a job in the pool, and from which of them to which it may go
    lanes         Lanes of workers: short jobs go to the quick worker, so that they wait for no long one; long ones to
                  the others
    lending       Versions of tensors that jobs read, whose memory stays as long as one of them may be sent to a worker
    pool          Pool of workers as the front sees it, whoever they are
    process       One worker process as the front sees it: a socket that jobs go down, replies that come up, and its end
    process_pool  The pool of worker processes: jobs are admitted, sent to workers, stopped in time, and accounted for
    replica       Replica of the resident tensors that a worker knows, as the front sees it: those it asked for, up to a
                  number
    stats         Statistics of a pool, for whoever watches it
    sum_run       One sum over examples that is run in pieces: how it is cut, which pieces are on their way, and what
                  they came to
    sums          Sums over examples that several workers do: cut into pieces, each run where a worker idles, and put
                  together
    supervisor    The worker processes: each has its place, and another takes it when one ends
    ticket        A job in the hands of the front: its state, whose it is, who is to be told, where it is, and what is
                  held for it
    topology      Topology: how many worker processes there are, and what each is for
    version_sets  Sets of versions of tensors that are read together, each known to workers under one name for as long
                  as it is read
    watch         Watch that is kept every now and then, not by a timer each: deadlines, workers that do not stop or
                  grow old
"""
