"""From data and a black box to clauses and a transparent model; import the module you need, nothing loads here."""
