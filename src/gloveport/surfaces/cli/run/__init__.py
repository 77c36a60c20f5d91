"""`gloveport run`: the command, what it shows while the program runs, and how results and errors are printed."""
