"""The report: one HTML file that says what a program is, what is known of it and what is not."""
