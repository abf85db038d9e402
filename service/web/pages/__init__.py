"""Pages that the server has about itself: the OpenAPI documents, the catalogue, the pages for people.

    error_pages → documentation
    openapi.json → openapi; catalogue.json → catalogue

They are texts, and files that were generated from the definitions of ops and calls.
"""
