"""The report: one HTML file that says what a program is, what is known about it and what is not."""
