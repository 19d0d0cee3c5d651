"""Rows and a black box become clauses and a transparent model."""
