"""What is deployed against what was approved: one verdict, with its evidence, for each deployed thing."""
