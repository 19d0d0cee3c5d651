"""A view in a database becomes a verdict."""
