"""What it costs to go past one machine: a cluster, HAProxy and Ray Serve beside one server (make bench-cluster)."""
