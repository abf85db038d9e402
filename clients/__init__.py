"""The clients, and what holds all of them to the same cases."""
