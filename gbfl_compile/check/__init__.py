"""Is an artifact its source? Witnesses, execution and consistency, each reported as what it is."""
