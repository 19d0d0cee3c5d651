"""The paper's experiment: its six data sets, its baselines, its model and ours, measured in one run."""
