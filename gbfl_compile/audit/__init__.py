"""What is deployed against what was approved: one answer, with its evidence, for each deployed thing."""
