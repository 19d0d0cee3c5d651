"""A table and a black box become a program, resumably."""
