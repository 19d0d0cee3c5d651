"""A table that was scored earlier becomes a verdict."""
