"""One module per command: parse, call, hand the result to render."""
