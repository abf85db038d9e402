"""Cases for the clients of all languages, and what asks and compares."""
