"""Sections of the ops' documentation, by the key that ops state as their `section`.

The documentation lists sections in the order of their keys. The first sentence of a text is the heading.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "activations": (
            "Activation functions. The smooth ones are formulas over stable parts; their gradients follow from those."
        ),
        "any_all": "Truth of any or of all of the elements.",
        "arange": "Ranges: numbers that are counted instead of sent.",
        "arithmetic": "Arithmetic of two operands. Each gradient is one line a partial derivative.",
        "attention": "Scaled dot-product attention.",
        "batch_statistics": "Batch norm by statistics that are given, and with running ones that it moves on.",
        "bessel": "Modified Bessel functions of the first kind, as they are and scaled by exp(−|x|).",
        "betainc": "The incomplete beta function, regularised: the distribution function of the beta distribution.",
        "betaln": "The logarithm of the beta function.",
        "call": (
            "A function in the place of a node, perhaps with a derivative of its own, or computed once more on "
            "the way back."
        ),
        "cast": "A tensor in another dtype.",
        "cat": "Tensors joined: along an axis they have, or along a new one.",
        "cdist": "Distances of all pairs of rows.",
        "cholesky": "The Cholesky decomposition.",
        "comparison": (
            "Comparisons of two operands. They broadcast as NumPy; the result is bool and carries no gradient."
        ),
        "complex_parts": "Complex numbers made of two real ones, and taken apart again.",
        "cond": "A choice between two functions, of which only one runs.",
        "condition": "What singular values say of a matrix: its condition, and its rank.",
        "containers": "Records and maps kept as one tensor, whose leading axis is cut into equal parts.",
        "conv": (
            "Convolution on one, two and three spatial axes. It and its adjoint are each the derivative of the other."
        ),
        "conv_transpose": "The adjoint of convolution, on one, two and three spatial axes.",
        "cumsum": "Running sums.",
        "cumulative": "Running products, extremes and logarithms of sums. The gradients are runs from the other end.",
        "det": "The determinant itself.",
        "diag": "Triangles and diagonals of the last two axes.",
        "draws": (
            "Random numbers: functions of a key, with no state. One key gives the same numbers always, "
            "everywhere, in a batch too."
        ),
        "eigh": "Eigenvalues and eigenvectors of symmetric matrices.",
        "einsum": "Einstein summation: products of several operands, summed over named axes.",
        "embedding": "Between class numbers and vectors: rows of a table, and one-hot vectors.",
        "erf": "The error function and its complement.",
        "erfinv": (
            "Functions of the normal distribution: the inverse error function, and the logarithm of the "
            "distribution function."
        ),
        "exponential": "Exponentials and logarithms.",
        "fft": "Discrete Fourier transforms, of complex tensors, and of real ones to the half that says all.",
        "fixed_point": "Fixed points: a function applied until nothing changes.",
        "flip": "Entries in another order or more than once: flip, roll, tile.",
        "gather": "Reading by an index tensor, and its adjoint: adding at an index tensor.",
        "grad": "Differentiation as an op.",
        "hyperbolic": "The hyperbolic functions and their inverses.",
        "identity": "Ops that hand their operand on as it is: for differentiation too, or cut off from it.",
        "igamma": (
            "The incomplete gamma functions, regularised: of the gamma distribution, the distribution function "
            "and the rest."
        ),
        "index": "Reading at several index tensors, adding there, and writing there.",
        "leaves": "Leaves: fed ones, constants, and tensors that are described instead of sent.",
        "lgamma": "The logarithm of the gamma function, and its derivatives of every order.",
        "linear": "Dense layers.",
        "log_softmax": "The logarithm of softmax.",
        "logic": (
            "Logic on truth values, and questions that are answered by one. A number counts as true where it is "
            "not zero."
        ),
        "logsumexp": "Reductions that overflow when written down naively: they work relative to the largest element.",
        "losses": "Losses: a number for each row or element, and what is made of them.",
        "lu": "The LU decomposition.",
        "map": "A function of each entry.",
        "masks": "What a mask picks, as many entries as are stated: where they are, and the entries themselves.",
        "matmul": "The matrix product.",
        "matrix_exp": "The exponential of a matrix.",
        "matrix_power": "Whole powers of a matrix.",
        "max_min": "The largest and the smallest element, and where they are.",
        "normalization": (
            "Normalisation: x brought to mean 0 and variance 1, or to mean square 1, then scaled and moved by "
            "parameters."
        ),
        "pinv": "Pseudoinverses, and least squares.",
        "pooling": "Pooling: one number for each window of a plane, its maximum or its mean.",
        "pooling_axes": (
            "Pools over one axis and over three, dilated and with a ceiling; and pools that give a stated number "
            "of windows."
        ),
        "power": "Powers and roots. Derivatives lower the exponent, and stay finite at 0 where they are.",
        "prod": "Products.",
        "qr": "The QR decomposition.",
        "reshape": "Movement that re-labels axes: reshape, broadcast_to, transpose.",
        "resize": "Tensors brought to other extents by interpolation.",
        "rounding": "Rounding to whole numbers: of a float in its own dtype, and of an integer nothing.",
        "scalar": (
            "Arithmetic with a constant. The scalar is weak, as a Python float in NumPy 2: it does not widen a "
            "float dtype."
        ),
        "scan": "Loops of a known length.",
        "segment_sum": "Sums over the rows of each segment.",
        "segments": "The largest, smallest, mean and product of the rows of each segment.",
        "selection": (
            "Choices between values: by a condition, by size, by bounds. The gradient goes to what was chosen."
        ),
        "sigmoid": "The logistic function and its integral, stable in both tails.",
        "sign": "The sign of a number, and what it is without one.",
        "sinc": "The normalised cardinal sine.",
        "slice": "A box or a single index cut out of a tensor, and the adjoint: a tensor put into a larger one.",
        "slice_at": "Boxes whose starts are computed: read, and replaced.",
        "slogdet": "The determinant.",
        "softmax": "Softmax. This file is a complete op: every part of the contract, and nothing else.",
        "solve": "Linear systems, and the inverse.",
        "sort": "Order along an axis: stable, as NumPy's, NaN last.",
        "split": "Tensors cut apart along an axis, into several results.",
        "squeeze": "Axes of extent 1 put in and taken out, and axes merged: spellings of `reshape`.",
        "stft": "The Fourier transform of a signal, window by window.",
        "sum": "Sums and means.",
        "svd": "The singular value decomposition.",
        "symmetric_function": "Functions of symmetric matrices, by their eigenvalues.",
        "take_along": "Reading along an axis at index tensors that broadcast.",
        "topk": "The largest entries along an axis, in order.",
        "triangular_solve": "Linear systems with triangular matrices.",
        "trigonometry": "The circular functions and their inverses. Angles are in radians.",
        "update_slice": "A tensor with a box of it replaced.",
        "var": "Variance.",
        "while_loop": "Loops that end when a condition says so, within a bound.",
        "whole_division": (
            "Quotients that are whole numbers, rounded down or towards 0, and the latter's remainder; the other's"
            " is `mod`."
        ),
        "xlogy": "Products with a logarithm that are 0 where the factor is: terms of entropies and likelihoods.",
        "zeta": "The Hurwitz zeta function.",
    }
)
