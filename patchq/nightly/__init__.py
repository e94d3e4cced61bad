"""The unattended run: the other rooms in order, and what people are told."""
