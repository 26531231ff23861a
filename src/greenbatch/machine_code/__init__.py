"""How the engine becomes machine code, and where that is kept: all that uses private parts of Numba."""
