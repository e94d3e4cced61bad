"""`patchq deps`: what the runner is made of beside upstream, whether it fits, what is newer."""
