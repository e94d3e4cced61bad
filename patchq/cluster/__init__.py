"""Nodes, ssh, processes: where the runner runs. Knows nothing about models."""
