"""A black box is loaded, and asked in large blocks."""
