"""Rows and their explanations become clauses."""
