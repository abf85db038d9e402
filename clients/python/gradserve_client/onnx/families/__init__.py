"""Rules for ONNX's ops, a family a file: each puts its own into `table.RULES`.

table             the table that they are put into
refused           ops that no graph can say, by reason
helpers           what several families write
arithmetic        elementwise numbers, comparisons, logic, and casts
bits              shifts and logic of bits
activations       elementwise functions of neural networks
attending         attention
reductions        sums and the like over axes, along axes, softmax, sorting
shapes            shapes, joining, cutting, padding, and constants of shapes
indexing          reading at positions that tensors hold
scattering        writing at positions that tensors hold
products          matrices, einsum, determinants
spectra           Fourier transforms, as products with constant matrices
convolution       convolutions of one to three axes, their adjoints, columns of images, and deformed ones
pools             windows: maxima, means, norms, and what undoes them
normalisation     means and variances taken out; dropout
resampling        resizing by constant matrices
sampling          reading images between their positions
recurrent         RNN, GRU and LSTM as scans
control_flow      If, Loop and Scan
"""
