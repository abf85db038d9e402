"""Foundations of the service: settings, errors, limits of the machine, keys, logs."""
