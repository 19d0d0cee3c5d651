"""Readers of text that people edit and databases rewrite."""
