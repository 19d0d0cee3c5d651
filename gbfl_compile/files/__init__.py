"""Bytes land whole or not at all."""
