"""The host: `Gloveport` wires the other folders together. Nothing else knows all of them.

port.py         `Gloveport`: runs programs, calls tools, replays
options.py      checks the options of a port and of a run
event_loop.py   runs everything on one event loop, for callers on any loop or thread
type_check.py   the type check before a run
failures.py     the error that ended a run → `Failure`
"""
