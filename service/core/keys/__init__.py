"""API keys: authentication, scopes, and rate and storage limits."""
