"""Ops that graphs cannot express, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_RANDOM: Final = ("it is random", "pass the noise as an input of the model")
_QUANTISED: Final = (
    "it quantises, and integers have no derivatives",
    "import the model as it was before quantisation",
)
_STRINGS: Final = ("it works on strings, which gradserve does not support", "")
_SEQUENCES: Final = ("it works on sequences or optionals, which are not tensors", "")
_SHAPE_BY_DATA: Final = ("the size of its result depends on the values of the data", "")
#: ops of the domain ai.onnx.ml
CLASSICAL: Final = ("it belongs to classical models, in the domain ai.onnx.ml", "")

_OF_STRINGS: Final = ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer")
_OF_SEQUENCES: Final = (
    "ConcatFromSequence",
    "Optional",
    "OptionalGetElement",
    "OptionalHasElement",
    "SequenceAt",
    "SequenceConstruct",
    "SequenceEmpty",
    "SequenceErase",
    "SequenceInsert",
    "SequenceLength",
    "SequenceMap",
    "SplitToSequence",
)
#: ops that the importer never runs on the example: the size of their results does not bound their cost
NOT_RUN: Final = frozenset({*_OF_STRINGS, *_OF_SEQUENCES, "ImageDecoder"})

#: reason for the refusal, and a workaround
UNSUPPORTED: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"), _RANDOM
    ),
    **dict.fromkeys(
        (
            "ConvInteger",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "MatMulInteger",
            "QLinearConv",
            "QLinearMatMul",
            "QuantizeLinear",
        ),
        _QUANTISED,
    ),
    **dict.fromkeys(_OF_STRINGS, _STRINGS),
    **dict.fromkeys(_OF_SEQUENCES, _SEQUENCES),
    "ImageDecoder": ("it reads image files", "decode them first, and pass the pixels"),
    **dict.fromkeys(("NonMaxSuppression", "NonZero", "Unique"), _SHAPE_BY_DATA),
    **dict.fromkeys(
        (
            f"ai.onnx.ml.{op}"
            for op in ("ArrayFeatureExtractor", "Binarizer", "LabelEncoder", "TreeEnsemble", "TreeEnsembleClassifier")
        ),
        CLASSICAL,
    ),
}
