"""Fuzzing: everything that reads what others wrote is given what nobody would write.

    corpus ─► mutation ─► target: keeps its promise, or the input is a find
       ▲                     │
       └── coverage: what reached a line by a new way is kept, and changed further

`python -m fuzz` runs every target for a minute; `tests/test_fuzz.py` runs each for a few seconds and replays the corpus.
"""
