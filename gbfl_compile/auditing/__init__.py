"""Compares what is deployed with what was approved: one verdict per deployed item, with its evidence."""
