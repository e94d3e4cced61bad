"""Where releases come from (git, package index) and the record of what was seen."""
