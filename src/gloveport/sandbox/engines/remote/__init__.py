"""Sandboxes of another Gloveport: the jailed process is there, and everything else stays here.

    RunAttempt ── RemoteWorker ── WebSocket ──► serve_loan ── Worker ── jailed process        (at the sandbox host)

The caller prepares the program, decides on its calls, makes them and records them. The sandbox host lends it one fresh
worker for one run. The frames of the wire pass through it unread, and its own watchdog enforces the limits. Nothing that
comes from there is trusted more than a guest: frames are decoded under the same budgets, and what it reports of CPU time
and memory is a claim within the run's limits. A connection that breaks ends the run; no program is ever sent twice.

    engine.py     the engines: each is a local engine's description, with another place to start its workers
    launcher.py   asks a sandbox host for workers
    worker.py     the worker of a run, as the caller sees it
    loan.py       the same worker at the sandbox host
    messages.py   what the two say to each other beside frames
"""
