"""Clients of gradserve, and what all of them are made from and held to."""
