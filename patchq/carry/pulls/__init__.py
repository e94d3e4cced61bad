"""Pull requests as patches: tracked, imported, refreshed, refused."""
