"""What upstream's moves mean for each patch: signals, verdicts and findings, all pure."""
