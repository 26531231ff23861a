"""Which part of a machine is powered, and what follows from it: pools of jobs, suspension, value."""
