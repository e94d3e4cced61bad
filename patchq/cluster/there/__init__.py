"""What runs on nodes: sent there as it stands, run by their own python3 (3.8 or newer)."""
