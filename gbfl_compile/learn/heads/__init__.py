"""Heads: what is fitted on the clauses. Each gives a decision of the rule language, ready to be a program."""
