"""Reductions, running reductions and sorts: along axes, and by segment."""
