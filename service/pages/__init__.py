"""Pages that the server has about itself: the OpenAPI documents, the catalogue, the pages for people.

    examples → operations → openapi → error_pages → documentation

What may live here: text, and what is made from definitions of ops and calls. What may not: an answer to a graph.

Files:
    catalogue          The op catalogue as it is served
    documentation      The pages for people. Their assets come with a package: nothing is loaded from the network
    documents          The OpenAPI documents as they are served: one was made beforehand, since it depends on no setting
    error_pages        Pages of codes: for each its explanation, the calls that answer it, and an example
    examples           For every refusal a request that provokes it, as the document shows them
    explanations       Explanations of all codes and how to mend them: the text of the pages that `type` leads to
    layout             JSON as a person would write it: what fits on a line stands on one
    openapi            Making of the OpenAPI document: paths from the routes, messages from the schemas, what every call
                       can refuse
    openapi30          The OpenAPI document in version 3.0.3, for generators that do not read 3.1
    operation          Description of one operation in the OpenAPI document, beyond its path and its docstring
    operations         Descriptions of all operations in the OpenAPI document
    protection         Headers that protect a page in a browser: to load nothing else, and to let no other page near it
    tensor_operations  Descriptions of resident tensors in the OpenAPI document, and of the headers that have to do with
                       them
"""
