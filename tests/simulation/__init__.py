"""Servers of one state in virtual time: the project's own journal and committer, and a checker of their answers."""
