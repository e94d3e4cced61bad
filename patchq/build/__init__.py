"""From a runner tree to something that can be installed, and where it came from."""
