"""Monty: an interpreter for a part of Python, written in Rust. Its worker is the only process in the jail.

    host ── Driver (feed_start, resume) ──► `monty subprocess`, exec'd in the jail, one checkout, one run, killed

The package's own client starts its workers as its children: the fork server, the jail and the limits could not reach
them. So the host launches the package's worker as it launches Deno, and speaks to it as the client's `feed_start` and
`resume` do (`messages` has version 6 of the protocol, which 1.4 speaks; checkout refuses any other). The host runs no
thread, child or library of Monty. It decodes what the worker sends under budgets, like the frames of every other guest.

    engine.py        how the worker is launched
    subset.py        the part of Python that Monty has; what it lacks is refused or rewritten
    worker.py        the pool's worker: frames in and out, by way of a driver
    driver.py        the state of one run
    messages.py      requests and answers; protobuf.py and nodes.py encode them and their values
    clock.py         clock, randomness and environment as the program sees them
    output.py        printed text, cut into lines
    tool_errors.py   failed calls as exceptions
    unsupported.py   messages about what Monty lacks
"""
