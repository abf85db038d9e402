"""The API: descriptions of calls, and reading and writing of their messages.

A body is parsed (`json_codec`, or `binary` for safetensors), except for a graph that is in the cache (`json_reader`).
The rest is validated, and the call reads the parts that it needs (`request`): tensors (`tensors`), graphs (`graphs`),
resident tensors (`residents`). `answers` writes the answer. Templates shorten both directions for a request that is
repeated with other numbers. The calls are in `calls`.

HTTP and execution belong elsewhere.
"""
