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
            "Activation functions. The smooth ones are formulas over numerically stable parts and get their gradients "
            "from these."
        ),
        "any_all": "Logical reductions.",
        "arange": "Ranges. Evenly spaced numbers that the server computes, so that you need not send them.",
        "arithmetic": "Binary arithmetic.",
        "attention": "Scaled dot-product attention.",
        "batch_statistics": "Batch normalisation with given or running statistics.",
        "bessel": "Modified Bessel functions of the first kind. Plain, and scaled by exp(−|x|).",
        "betainc": (
            "Regularised incomplete beta function. The cumulative distribution function of the beta distribution."
        ),
        "betaln": "Logarithm of the beta function.",
        "call": "Function calls. A call may have a custom derivative, or recompute its body in the backward pass.",
        "cast": "Dtype conversion.",
        "cat": "Joining and stacking. Tensors are joined along an existing axis or along a new one.",
        "cdist": "Pairwise distances.",
        "cholesky": "Cholesky decomposition.",
        "comparison": "Comparisons. Operands broadcast as in NumPy; the result is bool and has no gradient.",
        "complex_parts": "Complex numbers and their parts.",
        "cond": "Conditionals. Only one of the two functions runs.",
        "condition": "Condition number and rank.",
        "containers": "Records and maps. Each is stored as one tensor, whose leading axis is split into equal parts.",
        "conv": (
            "Convolutions. On one, two and three spatial axes. A convolution and its adjoint are each the derivative "
            "of the other."
        ),
        "conv_transpose": "Transposed convolutions. The adjoints of convolutions, on one, two and three spatial axes.",
        "cumsum": "Cumulative sums.",
        "cumulative": (
            "Cumulative products and extrema. And cumulative log-sum-exp. Gradients accumulate from the other end."
        ),
        "det": "Determinant.",
        "diag": "Triangles and diagonals. These ops use the last two axes.",
        "draws": (
            "Random numbers. Pure functions of a key, without state: a key always gives the same numbers, everywhere, "
            "also in a batch."
        ),
        "eigh": "Eigenvalues and eigenvectors of symmetric matrices.",
        "einsum": "Einstein summation. Products of several operands, summed over named axes.",
        "embedding": "Embeddings and one-hot vectors.",
        "erf": "Error function and its complement.",
        "erfinv": (
            "Normal distribution. The inverse error function, and the logarithm of the cumulative distribution "
            "function."
        ),
        "exponential": "Exponentials and logarithms.",
        "fft": (
            "Discrete Fourier transforms. Transforms of complex tensors, and of real ones to the non-redundant half."
        ),
        "fixed_point": "Fixed points. A function is applied until its result no longer changes.",
        "flip": "Reordering and repeating. The ops flip, roll and tile.",
        "gather": "Gather and scatter. Read at an index tensor, and the adjoint: add at an index tensor.",
        "grad": "Gradients as nodes.",
        "hyperbolic": "Hyperbolic functions and their inverses.",
        "identity": "Identity and stopped gradients. These ops return their operand; gradients pass through or stop.",
        "igamma": (
            "Regularised incomplete gamma functions. The cumulative distribution function of the gamma distribution, "
            "and its complement."
        ),
        "index": "Advanced indexing. Read, add and write at several index tensors.",
        "leaves": "Leaves. Fed tensors, constants, and tensors that are described instead of sent.",
        "lgamma": "Logarithm of the gamma function. With its derivatives of every order.",
        "linear": "Dense layers.",
        "log_softmax": "Log-softmax.",
        "logic": "Logical operations. Nonzero numbers count as true.",
        "logsumexp": (
            "Stable reductions. Their naive formulas overflow, so they are computed relative to the largest element."
        ),
        "losses": "Loss functions. One loss for each row or element, or their mean or sum.",
        "lu": "LU decomposition.",
        "map": "Mapping a function over entries.",
        "masks": "Selection by a mask. The first k entries where the mask is true, or their positions.",
        "matmul": "Matrix product.",
        "matrix_exp": "Matrix exponential.",
        "matrix_power": "Integer powers of a matrix.",
        "max_min": "Maximum and minimum. Values and positions.",
        "normalization": (
            "Normalisation. x is normalised to mean 0 and variance 1, or to mean square 1, then scaled and shifted by "
            "parameters."
        ),
        "pinv": "Pseudoinverse and least squares.",
        "pooling": "Pooling over planes. The maximum or the mean of each window.",
        "pooling_axes": (
            "Pooling over one and three axes. With dilation and a ceiling mode. Adaptive pooling has a given number of "
            "windows."
        ),
        "power": "Powers and roots. Derivatives lower the exponent, and are finite at 0 if the exact derivative is.",
        "prod": "Products.",
        "qr": "QR decomposition.",
        "reshape": "Reshaping. Ops that relabel axes: reshape, broadcast_to, transpose.",
        "resize": "Resizing by interpolation.",
        "rounding": "Rounding to whole numbers. Floats keep their dtype; integers do not change.",
        "scalar": (
            "Arithmetic with a constant. The scalar is weakly typed, like a Python float in NumPy 2: it does not widen "
            "a float dtype."
        ),
        "scan": "Loops of a known length.",
        "segment_sum": "Segment sums.",
        "segments": "Segment reductions. The maximum, minimum, mean and product of the rows of each segment.",
        "selection": (
            "Selection between values. By a condition, by size or by bounds; the gradient goes to the selected value."
        ),
        "sigmoid": "Logistic function and its integral. Stable in both tails.",
        "sign": "Sign and absolute value.",
        "sinc": "Normalised sinc.",
        "slice": (
            "Slicing and padding. Read a box or a single index of a tensor, and the adjoint: put a tensor into a "
            "larger one."
        ),
        "slice_at": "Slices at computed positions. Read or replace a box whose start is computed.",
        "slogdet": "Sign and logarithm of the determinant.",
        "softmax": "Softmax.",
        "solve": "Linear systems and matrix inverse.",
        "sort": "Sorting. Stable, with NaN last, as in NumPy.",
        "split": "Splitting. A tensor is split along an axis into several results.",
        "squeeze": (
            "Inserting and removing axes. Axes of extent 1 are inserted or removed, or axes are merged: variants of "
            "`reshape`."
        ),
        "stft": "Short-time Fourier transform.",
        "sum": "Sums and means.",
        "svd": "Singular value decomposition.",
        "symmetric_function": "Functions of symmetric matrices. Computed from the eigenvalues.",
        "take_along": "Gather with broadcasting. Read along an axis at index tensors that broadcast.",
        "topk": "Largest entries. In order, along an axis.",
        "triangular_solve": "Triangular linear systems.",
        "trigonometry": "Trigonometric functions and their inverses. Angles are in radians.",
        "update_slice": "Slice updates. Replace a box of a tensor.",
        "var": "Variance.",
        "while_loop": "While loops. They run until a condition is false, within a bound on the steps.",
        "whole_division": (
            "Integer division and remainders. Quotients are rounded down (with the remainder `mod`) or towards 0 "
            "(with the remainder `rem`)."
        ),
        "xlogy": "Products with a logarithm. They are 0 where the factor is 0: terms of entropies and likelihoods.",
        "zeta": "Hurwitz zeta function.",
    }
)
