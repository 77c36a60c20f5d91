"""The journal: recordings of runs, for replay."""
