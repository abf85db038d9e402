"""Mistakes that newcomers make, and the error that each gets."""
