"""Recorded exchanges: the same requests to two servers, answered with the same bytes."""
