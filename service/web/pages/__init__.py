"""Pages that the server has about itself: the OpenAPI documents, the catalogue, the pages for people.

    failure → explanations → error_pages → documentation; openapi.json → openapi30, sdk → documents

What may live here: text, and what was made beforehand of definitions of ops and calls. What may not: an answer to a
graph.
"""
