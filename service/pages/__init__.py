"""What the server says about itself: the OpenAPI documents, the catalogue, the pages for people.

    examples → operations → openapi → error_pages → documentation

What may live here: text, and what is made from definitions of ops and calls. What may not: an answer to a graph.
"""
