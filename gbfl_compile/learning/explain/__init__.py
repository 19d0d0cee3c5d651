"""Each row gets a pertinent positive and a pertinent negative."""
