"""Programs that run a scorer in a process of its own."""
