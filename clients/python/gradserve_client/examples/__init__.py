"""Programs to read and to start: `python -m gradserve_client.examples.digits`."""
