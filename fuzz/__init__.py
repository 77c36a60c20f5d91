"""Fuzzing: every parser of untrusted input gets malformed input.

    corpus ─► mutation ─► target: keeps its promise, or the input is a find
       ▲                     │
       └── coverage: an input that takes a new path through the code is kept and mutated further

`python -m fuzz` runs every target for a minute. `tests/test_fuzz.py` replays the corpus and runs each target for a few seconds.

`target` defines a target and its promise. `targets` lists them all. `campaign` runs one target, `mutation` makes inputs, and
`coverage` follows them through the code. The other modules hold the targets, each named after what it attacks; those in
`stall` look for inputs that stop the host's event loop.
"""
