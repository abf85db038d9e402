"""What a card runs for a node that is no loop: kernels of ours, products by cuBLASLt, convolutions by cuDNN.

    geometry → card recipe: phases, and the memory that they work in

What may live here: recipes of nodes for a card, and the libraries of a card by their C interfaces. What may not: plans,
CuPy, and when something is compiled, bound or recorded, which is `engine.executors`'.
"""
