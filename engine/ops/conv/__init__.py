"""Convolution and pooling: sliding windows over spatial axes."""
