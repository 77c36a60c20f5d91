"""Sessions: files and state that several runs of one agent share, one run at a time."""
