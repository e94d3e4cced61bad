"""Will it run there, with this checkpoint? Checkpoint, draft, template, artifact and nodes."""
