"""The documentation site: the repository's Markdown, and a generated page for each op and each error code.

`python -m scripts.website` builds it in build/site with Sphinx. A page of an op shows a request drawn from the op's
samples and the answer that a worker gives to it during the build. After the build, every link and resource is checked.
Generated sources are not kept in the repository.
"""
