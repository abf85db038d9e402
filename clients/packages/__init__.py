"""Tests of the clients' packages, each installed in a project of its own."""
