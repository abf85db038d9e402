"""Worker processes: the pool that gives them tasks, the messages between both, and the computation.

A task is one request on its way through the pool. The front submits it to the `ProcessPool`, which admits it, puts it
into a lane, and sends it to a worker process. The worker reads the request as a call, compiles a plan or finds it in
its cache, runs it, and writes the reply. Small bodies travel in the frames of a socket, large ones in shared memory.

    front   process_pool → lanes → supervisor → worker_process
    between task, frames, shared_memory, residents
    worker  child → worker_main → worker → executions

Of the last line, the front imports only `confinement` and `sandbox`. No module here knows HTTP.
"""
