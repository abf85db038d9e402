"""Pages that the server has about itself: the OpenAPI documents, the catalogue, the pages for people.

    failure → explanations → error_pages → documentation; openapi.json → openapi30, sdk → documents

What may live here: text, and what was made beforehand of definitions of ops and calls. What may not: an answer to a
graph.

Files:
    catalogue        The op catalogue as it is served
    documentation    The pages for people. Their assets come with a package: nothing is loaded from the network
    documents        The OpenAPI documents as they are served: one was made beforehand, since it depends on no setting
    error_pages      Pages of codes: for each its explanation, the calls that answer it, and an example
    explanations     Explanations of all codes and how to mend them: the text of the pages that `type` leads to
    failure          Failure: a refusal as pages show it, with a request that provokes it where one does
    layout           JSON as a person would write it: what fits on a line stands on one
    openapi30        The OpenAPI document in version 3.0.3, for generators that do not read 3.1
    playground_page  The playground: the page at `/`, where a request is written, drawn and run. `make playground`
                     builds its files
    protection       Headers that protect a page in a browser: to load nothing else, and to let no other page near it
    sdk              The OpenAPI document for generators of clients: the same operations in JSON alone, without examples
"""
