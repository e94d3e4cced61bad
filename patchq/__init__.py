"""patchq carries a queue of patches over moving upstream releases."""

__version__ = "0.1.0"
