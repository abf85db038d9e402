BREAKS = {}
