"""Example programs, run as `python -m gradserve_client.examples.digits`."""
