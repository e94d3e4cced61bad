"""A series that touches compiled code: what has to be compiled anew and why, and doing it."""
