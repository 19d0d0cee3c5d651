"""The paper's experiment as a command: its six sets, its baselines, its model and ours, measured in one run."""
