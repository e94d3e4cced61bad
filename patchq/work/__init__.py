"""The hand on a patch: the push/pop tree, and what changes the series on the same base."""
