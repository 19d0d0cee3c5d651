"""Why a row got its class: what held, which part of it suffices, what would change it. Exact, on the program alone."""
