"""CPython: the whole of Python, in a jail that holds native code."""
