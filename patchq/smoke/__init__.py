"""Is what runs good? Probes, the watch for spinning, benchmarks, comparison."""
