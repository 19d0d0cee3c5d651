"""Scorers that can be called: libraries, callables, HTTP services."""
