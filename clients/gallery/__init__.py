"""The graphs of the gallery that are imported: models made here, and what their own systems compute of them.

    example      a model as an example of the gallery: its graph, and values and slopes that its own system found
    onnx_models  models of ONNX

`make gallery` writes their files into examples/gallery. A further system is a module with a tuple `EXAMPLES`, which
`__main__` names. Nothing is downloaded: weights are drawn, and rounded so that they are short.
"""
