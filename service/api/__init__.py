"""The API: descriptions of its calls, and the reading and writing of messages, whatever call they are of.

A body becomes JSON (`json_codec`, or `binary` for safetensors), of which a graph that was seen before is not parsed
again (`json_reader`). What is left is validated (`validation`), and its parts are read as the call asks for them
(`request`): tensors (`tensors`), graphs (`graphs`), resident tensors (`residents`). The way back is `answers`.
`templates` shortens both ways for a request that comes again with other numbers. The calls are found in `calls`.

What may live here: what is said of calls, and messages. What may not: HTTP, execution.
"""
