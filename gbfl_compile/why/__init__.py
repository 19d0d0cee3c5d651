"""Why a row got its class: what held, what of it suffices, and what would change it. Exact, on the program alone."""
