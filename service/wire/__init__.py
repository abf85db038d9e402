"""Between bytes and the engine's terms: JSON, safetensors, tensors, graphs, requests and answers.

    media, json_codec → long_lists, familiar, tensors → validation → translate → graph_source → json_reader → request
                                           node_place ┘          apart ┘          message → binary → answers

What may live here: the reading and writing of messages, whatever call they are of. What may not: HTTP, execution.
"""
