"""What a card runs for a node that is no loop: kernels of ours, products by cuBLASLt, convolutions by cuDNN.

    geometry → card recipe: phases, and the memory that they work in

What may live here: recipes of nodes for a card, and the libraries of a card by their C interfaces. What may not: plans,
CuPy, and when something is compiled, bound or recorded, which is `engine.executors`'.

Files:
    attention_products   Attention on a card as products, with whole matrices of scores in the workspace, and kernels
                         between them
    attention_recipes    Recipes of attention in half: by cuDNN alone
    candidates           Candidates: ways of a library to compute one thing, of which the quickest is chosen by timing,
                         once, and kept
    card_code            LLVM IR → machine code of a card: PTX by LLVM, from which nvJitLink assembles it. Neither needs
                         a card, or a driver
    card_recipe          Card recipe: what a card launches for one node, in order, and the memory that it works in
    card_runs            Runs of plans on a card in this process: who wants to be alone with the card asks whether there
                         are any
    card_table           The table of card recipes: by geometry or op, what a card launches for a node in place of its
                         array module
    card_terms           Terms of a card: what recipes are made within, and cuDNN, where it is installed
    card_text            What the kernels of nodes are written in for cards: the dialect of loops, and how threads share
                         what there is to do
    column_convolutions  Convolution on a card without a library for it: columns by kernels of ours, and products
    columns              Columns on a card: what the windows of a convolution see, laid out as a matrix, and gathered
                         back from one
    convolution_recipes  Recipes of convolutions: by cuDNN, where it has a plan, else by columns and products
    convolutions         Convolutions by cuDNN: a recipe of a geometry in one of three directions, where it has a plan
                         for it
    cublaslt             cuBLASLt by its C interface: the functions, numbers and structures that products need, as
                         `cublasLt.h` has them
    cudnn_attention      Attention in half by cuDNN: recipes of the rows and of the way back, where nothing but later
                         keys is hidden
    cudnn_calls          Plans of cuDNN bound to memory: calls that launch them on the stream that is current
    cudnn_library        cuDNN, where it is installed: graphs for one card, a handle for each thread, and what calls
                         raise
    cudnn_plans          Plans of cuDNN: the first of its heuristics that passes the notes and fits the workspace, or
                         the quickest, kept
    index_reads          Reading at indices on a card: a thread for each element of the result, which reads one index
                         and one element
    index_sums           Adding at indices on a card, in the order of the indices and without atomics: so bits are those
                         of a processor
    libraries            Libraries of a card: which ones there are, where they were found, and what is used instead of
                         one that is missing
    moves                Moves on a card: elements that lie in one way, laid in another; those that were computed wider
                         are rounded
    pools                Pools on a card: of each window of a plane the maximum, where that lies, or the mean, and the
                         way back of maxima
    product_calls        Products bound to addresses of a card: each a call of cuBLASLt, or a few, by an algorithm that
                         is chosen once
    product_recipes      Recipes of matrix products: by cuBLASLt as the operands lie, or, in `tf32x3`, by three products
                         of their parts
    products             A product as cuBLASLt is asked for it: which matrices it reads as they lie, and in how many
                         calls
    sums                 Sums on a card over any axes of a tensor, in an order that its shape and its layout fix
"""
