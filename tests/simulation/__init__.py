"""Servers at one place on virtual time: the project's own journal and committer, and a checker of what they answer."""
