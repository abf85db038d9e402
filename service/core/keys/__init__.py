"""Keys: who may call, what each may do, and how much of it."""
