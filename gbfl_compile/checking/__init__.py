"""Does an artifact equal its source? Read it back, prove it, run it on witnesses; each kind of evidence has a name."""
