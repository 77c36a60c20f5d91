"""What happened: the events and frames of runs, for replay."""
