"""Tables of any size are read and written with their values unchanged."""
