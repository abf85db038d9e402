"""CUDA backend: the GPU executor, with our own kernels, cuBLASLt products and cuDNN convolutions. Experimental.

    fused node → CUDA C, or LLVM IR → machine code
    geometry of another node → GPU recipe: phases, and their workspace
    plan → calls, recorded as CUDA graphs → launches

CuPy is imported only when an executor is opened. The runtime finds the executor by the name of its module.
"""
