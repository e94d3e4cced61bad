"""Stories across rooms, told to the command line and judged by appliers that are not ours."""
