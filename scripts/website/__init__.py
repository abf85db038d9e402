"""The documentation as a site: the Markdown of the repository, and a page for each op and each error code.

    assemble   the Markdown files and the generated pages, as the sources of one site
    ops        pages of the ops, from the registry; examples: a request for each, and its answer
    errors     pages of the error codes, from what the server shows under /docs/errors
    check      what is built refers to no other host, and its links lead somewhere
    conf       how Sphinx builds it

`python -m scripts.website` builds it in build/site. What is generated is not kept in the repository.
"""
