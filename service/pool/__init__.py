"""The pool of workers: jobs are admitted, queued, sent, stopped in time, and done again where a worker has ended.

    process_pool → lanes → supervisor → process

What may live here: admission, queues, turns, deadlines, the supervision of workers. What may not: HTTP, and the work.

Files:
    accounts      Callers as the pool knows them: what each has in work, and whether what it calls short has been short
                  lately
    admission     What is turned away before anything is done for it: more jobs than are held, or what cannot be in time
    cost_model    What jobs are expected to take: as their plans say it, corrected by what was measured
    footprint     What the processes of a server take once their caches are full: by the settings, and by what was
                  measured
    incidents     Workers that were ended by a signal: by which, at which plan; and the plans that are to run without
                  kernels for it
    job_state     The states of a job in the pool, and from which of them to which it may go
    lanes         Which worker does a job: short ones the quick worker, so that they wait for no long one; long ones the
                  others
    pool          What the front knows of the workers, whoever they are: processes of their own, or threads of this one
    process       One worker process as the front sees it: a socket that jobs go down, replies that come up, and its end
    process_pool  The pool of worker processes: jobs are admitted, sent to workers, stopped in time, and accounted for
    replica       What a worker knows of the resident tensors, as the front sees it: those that it asked for, until they
                  are too many
    stats         What a pool says of itself, for whoever watches it
    supervisor    The worker processes: each has its place, and another takes it when one ends
    threads       Workers that are threads of this process: for an application that embeds the service, and for its
                  tests
    ticket        A job in the hands of the front: its state, whose it is, who is to be told, where it is, and what is
                  held for it
    topology      How many worker processes there are, and what each is for
    watch         What is looked at every now and then, not by a timer each: deadlines, workers that do not stop or grow
                  old
"""
