"""The engine for Python that needs no whole Python: Monty, an interpreter in Rust, as the one process in the jail.

    host ── Driver (feed_start, resume) ──► `monty subprocess`, exec'd in the jail, one checkout, one run, killed

`pydantic_monty`'s own client starts its workers as children of its own process: out of reach of the fork server, the
jail, the limits and the kill. So the worker that the package brings is launched like Deno, and the host speaks to it as
the client's `feed_start` and `resume` do (`messages`: version 6 of the protocol, which 1.4 speaks; another is refused at
checkout). That leaves one process for each run, and no thread, child or library of Monty's on the host; what the worker
says is decoded here, under budgets, as the frames of every other guest are.

    protobuf ─► nodes (values) ─► messages (requests, answers) ─► driver (one run) ─► worker (what the pool holds)
    world (clock, randomness, environment) · output (lines) · failures (ToolError) · lacks (what Monty does not have)
"""
