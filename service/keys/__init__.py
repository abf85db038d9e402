"""Who may call: bearer keys, what each may do, and how much of it."""
