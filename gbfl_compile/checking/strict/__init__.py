"""Readers that account for everything in a text: only what they read may be called proved."""
