"""Which of the things that moved between two runners brought a fault."""
