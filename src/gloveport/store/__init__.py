"""The store: one SQLite file in which every host records what happens, so that it can be proven afterwards.

    database       opens the file: access rights, settings, numbered migrations
    event_log      the writer of one host: its chain of events, one thread, grouped commits
    verification   recomputes every chain and reports the first difference in each
    reading        reads events, of one run or of one tool, without changing the file

Any number of hosts share the file. Each has a chain of its own, in which every event holds the hash of the one before. The
chains refer to each other's heads, so the end of one can't be cut off unnoticed while another one is intact.
"""
