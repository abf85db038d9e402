"""The other servers. Each runs in the environment of `make bench-service PEERS=1`, and imports nothing of ours."""
