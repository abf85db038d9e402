"""CUDA: the GPU executor, with kernels of our own, cuBLASLt products and cuDNN convolutions. Experimental.

    fused node → CUDA C, or LLVM IR → machine code
    geometry of another node → card recipe: phases, and their workspace
    plan → calls, which are recorded as CUDA graphs → launches

CuPy is imported when an executor is opened, not before. The runtime finds the executor by the name of its module.
"""
