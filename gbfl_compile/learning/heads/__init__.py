"""Heads fitted to clauses; each returns a decision of the rule language, ready to be a program."""
