"""Results to people and machines: tables, progress, JSON, Markdown. Decides nothing."""
