"""Readers against engines and compilers: whatever is read must answer as the engine does; what is refused is counted."""
