"""The API: descriptions of its calls, and the reading and writing of messages, whatever call they are of.

A body is parsed (`json_codec`, or `binary` for safetensors), except for a graph that was seen before (`json_reader`).
The rest is validated (`validation`), and the call reads the parts that it needs (`request`): tensors (`tensors`),
graphs (`graphs`), resident tensors (`residents`). `answers` writes the answer. `templates` shortens both ways for a
request that comes again with other numbers. The calls are found in `calls`.

HTTP and execution belong elsewhere.
"""
