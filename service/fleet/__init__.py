"""Import paths of Ray Serve configurations written for release 0.1. They go with the next release."""
