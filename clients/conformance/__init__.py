"""Conformance cases for the clients of all languages, and the runner that compares their results."""
