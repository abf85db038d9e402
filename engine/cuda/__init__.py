"""CUDA: the GPU executor, with kernels of our own, cuBLASLt products and cuDNN convolutions. Experimental.

    fused kernel → CUDA C, or LLVM IR → machine code
    geometry of another node → card recipe: phases, and the memory that they work in
    plan → calls, which are recorded as CUDA graphs → launches

CuPy is imported when an executor is opened, never before. Nothing below this room imports it: the runtime finds the
executor by the name of its module.
"""
