"""Is an artifact its source? Read it back, prove it, run it on witnesses; each kind of evidence has its own word."""
