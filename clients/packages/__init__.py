"""Packages of our clients, each taken by a project of its own."""
