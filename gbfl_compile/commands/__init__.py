"""One command of `gbfl` a file; `cli` puts them together."""
