"""Benchmarks beside the peers: ``python -m tests.bench`` prints what docs/performance.md shows."""
