"""What a reader found in an artifact: the form that the prover takes, and the parts that readers build it from."""
