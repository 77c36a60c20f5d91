"""The host: `Gloveport` wires the other folders together. Nothing else knows all of them.

port.py             `Gloveport`: runs programs, calls tools, replays
run_request.py      one run: what was asked for, what the sandbox may use of it, its outcome
options.py          checks the options of a port and of a run
event_loop.py       runs everything on one event loop, for callers on any loop or thread
source_set.py       the sources of a port, and the catalog of what is open among them
source_opener.py    opens sources side by side, within time limits
catalog_builder.py  the open sources → the catalog; leaves out what does not fit
pinning.py          suspends tools whose definition has changed since it was accepted
type_check.py       the type check before a run
plugins/            plugins: found, trusted, loaded, called
failures.py         the error that ended a run → `Failure`
"""
