"""Stalls: no input may keep the host's event loop from turning for more than 50 ms of CPU time (S23).

    recipe ─► measurement ═pipe═► host: an entrance takes the input while a heartbeat runs ─► verdict
                 │                  │
                 │                  └── peer: the hostile service, server and client, in a process of its own
                 └── a host that uses too much CPU time is killed; a find must repeat in two fresh hosts

An input is a recipe: a short JSON document that describes a long text (`recipe`). `entrance` defines an entrance; the modules
that are named after what they attack hold the entrances, and `targets` makes fuzz targets of them.
"""
