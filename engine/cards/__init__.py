"""Card kernels for nodes outside fused loops: our own, cuBLASLt products, cuDNN convolutions.

    geometry → card recipe: phases, and the memory that they work in

What may live here: recipes of nodes for a card, and the libraries of a card by their C interfaces. What may not: plans,
CuPy, and when something is compiled, bound or recorded, which is `engine.executors`'.
"""
