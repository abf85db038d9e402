"""Clients that generators make of the OpenAPI documents: a recipe each, run against a server."""
