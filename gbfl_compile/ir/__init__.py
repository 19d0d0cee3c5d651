"""The rule language: nodes, what they mean, which are legal, and how they are written down."""
