"""`gbfl mine`: a table and a black box in, a rule program with its figures out."""
