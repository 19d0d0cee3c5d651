"""From wrong answers to the clause, answer or column that was changed."""
