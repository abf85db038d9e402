"""What is computed: workloads in groups, each with data of its own. A group is a mapping of names to makers."""
