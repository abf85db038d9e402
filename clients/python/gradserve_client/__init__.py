"""The Python client of gradserve."""
