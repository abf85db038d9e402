"""Unsupported ops and the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

RANDOM: Final = ("a graph cannot use PyTorch's random number generator", "pass the noise as an input of the module")
_RANDOM: Final = (f"it is random; {RANDOM[0]}", RANDOM[1])
_BY_DATA: Final = (
    "the size of its result depends on the values of the data",
    "use torch.where or torch.nonzero_static, or pass the positions as an input",
)
_NUMBER: Final = ("it makes a Python number from the data", "compute with the tensor")
_PACKED: Final = ("it works on packed sequences, whose lengths are data", "pad the sequences and mask the padding")
_BACKWARD: Final = ("it is an op of autograd, which modules do not call", "")
_SIZE: Final = ("it is an unknown size, but an import knows all sizes", "")
_CHANGING: Final = (
    "it changes buffers; exports have _native_batch_norm_legit_functional instead, which has a rule",
    "",
)
_RESIZED: Final = ("it resizes a tensor in place", "make a tensor of the new size")

#: the reason and a workaround
UNSUPPORTED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        (
            "bernoulli",
            "bernoulli.p",
            "binomial",
            "cauchy",
            "exponential",
            "geometric",
            "log_normal",
            "multinomial",
            "normal.Tensor_Tensor",
            "normal.Tensor_float",
            "normal.float_Tensor",
            "normal.float_float",
            "normal_functional",
            "poisson",
            "rand",
            "rand_like",
            "randint",
            "randint.low",
            "randint_like",
            "randint_like.low_dtype",
            "randn",
            "randn_like",
            "randperm",
            "rrelu_with_noise",
            "rrelu_with_noise_functional",
            "uniform",
            "_sample_dirichlet",
            "_standard_gamma",
        ),
        _RANDOM,
    ),
    **dict.fromkeys(
        (
            "bincount",
            "masked_select",
            "nonzero",
            "unique_consecutive",
            "unique_dim",
            "_unique2",
        ),
        _BY_DATA,
    ),
    **dict.fromkeys(("_local_scalar_dense", "item", "equal"), _NUMBER),
    **dict.fromkeys(("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data"), _PACKED),
    **dict.fromkeys(
        (
            "_adaptive_avg_pool2d_backward",
            "avg_pool2d_backward",
            "convolution_backward",
            "embedding_dense_backward",
            "max_pool2d_with_indices_backward",
            "native_group_norm_backward",
            "native_layer_norm_backward",
        ),
        _BACKWARD,
    ),
    **dict.fromkeys(("sym_is_contiguous", "sym_numel", "sym_size.int", "sym_storage_offset", "sym_stride.int"), _SIZE),
    "_native_batch_norm_legit": _CHANGING,
    "resize_": _RESIZED,
}
