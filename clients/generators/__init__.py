"""Clients that third-party generators make from the OpenAPI documents, each run against a server."""
