"""Between bytes and the engine's terms: JSON, safetensors, tensors, graphs, requests and answers.

    media, json_codec → long_lists, familiar, tensors → validation → translate → graph_source → json_reader → request
                                           node_place ┘          apart ┘          message → binary → answers

What may live here: the reading and writing of messages, whatever call they are of. What may not: HTTP, execution.

Files:
    answers           Answers, from the engine's terms to the fields of the wire: JSON, or safetensors where these were
                      asked for
    apart             The graph of a request apart from the rest of it, found by where its text begins and ends
    binary            Requests and answers as safetensors: an 8-byte length, a JSON header, and the tensors' bytes as
                      they lie in memory
    familiar          Suggestions for a field that a message does not have, or for null
    graph_source      Graphs as they came, and the programs that they stand for: no text is parsed and checked twice
    json_codec        Bytes to JSON values, strictly: no key twice, no NaN, no deep nesting, integers exact
    json_reader       Requests in JSON: of one whose graph was seen before, only the rest is parsed
    long_lists        Long lists of numbers in JSON: read chunk by chunk into an array, so that no number is an object
                      for long
    media             The media types and the content coding that are spoken, and which of them a request means
    message           A request once it is parsed, whatever it came as
    node_place        Where in a request a node of a graph stands, also one of a function; and where a function does
    precision_choice  Choice of a precision that a server leaves to requests: what one gets that asks for none, and
                      where it ends
    request           A request that fits its schema, read part by part as its call asks for them
    request_template  The shape of a request, which decides all but numbers, and the data of its tensors, which are the
                      numbers
    resident_feed     Feeds of resident tensors, or of some of their rows
    storing           `store`: which nodes of a request are kept as resident tensors, and what the answer says of them
    template          Answers that differ in their numbers alone: what is the same in all is written once, and numbers
                      are put in
    tensors           Tensors on the wire to arrays and back, without losing a bit
    translate         From graphs on the wire to programs of the engine, and back. The only place that knows both
    validation        Parsed JSON against the wire's schemas, and pydantic's findings as a refusal that says where
    version           A resident tensor, as a request reads it
"""
