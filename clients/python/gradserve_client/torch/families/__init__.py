"""Rules for PyTorch's ops, a family a file: each puts its own into `table.RULES`.

table             the table that they are put into
refused           ops that no graph can say, by reason
helpers           what several families write
elementwise       numbers one by one: arithmetic, functions, powers, remainders, casts
integers          quotients and bits of whole numbers
comparisons       comparisons, logic, choices
activations       elementwise functions of neural networks, and dropout that drops nothing
clamping          bounds, and what is flat beyond them
reductions        sums and the like over axes
ordering          sorting, largest entries and where they are, running sums
shapes            shapes, joining, cutting, repeating
borders           pads of constants, of reflections, of the border
products          matrices, their factors and determinants
convolution       convolutions of one to three axes, their adjoints, columns of images
pools             windows: maxima and means
normalisation     means and variances taken out, and running statistics
indexing          reading at positions that tensors hold
scattering        writing at positions that tensors hold
resampling        resizing by constant matrices
sampling          reading images between their positions
attention         attention
recurrent         RNN, GRU and LSTM as scans
distances         distances between rows
losses            losses whose derivative is not that of their parts
constants         tensors that no data are in
"""
