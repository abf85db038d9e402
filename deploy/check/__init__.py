"""Builds a target of the Dockerfile without a container engine, and runs what it built: `python -m deploy.check`."""
