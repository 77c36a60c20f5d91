"""`gloveport runs prune`: deletes old runs."""

from __future__ import annotations

import time
from contextlib import closing

from gloveport.store.database import StoreFile
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import Statement
from gloveport.store.retention import Pruned, cutoff, prunable_runs, prune_step, used_bytes
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.record_documents import since_time
from gloveport.types import MIB


def prune_command(view: ViewOptions, older_than: str | None, *, dry_run: bool) -> int:
    """Delete runs that ended long ago, and what only they refer to; return the exit code."""
    governance = view.settings(quiet=True).governance
    path, config = governance.store_path, governance.store_config
    with closing(StoreFile(path)) as store, store.reading() as connection:
        before = since_time(older_than, "--older-than") if older_than is not None else cutoff(connection, config)
        done = Pruned(prunable_runs(connection, before))
        if not dry_run:
            about = {"runs": done.runs, "before": before}
            noted = Statement("INSERT OR REPLACE INTO store_state VALUES ('pruned', ?)", (time.time_ns() // 1000,))
            EventLog.record_change(path, "runs-pruned", about, noted)
            connection.execute("PRAGMA secure_delete = ON")
            done, more = Pruned(), True
            while more:
                step = prune_step(connection, before)
                done, more = Pruned(done.runs + step.runs, done.contents + step.contents), step.is_partial
                if older_than is None:
                    more, before = more or cutoff(connection, config) > before, max(before, cutoff(connection, config))
        used = used_bytes(connection)
    if view.as_json:
        fields = {"runs": done.runs, "contents": done.contents, "dry_run": dry_run, "used_bytes": used}
        write_document(view.out, {"ok": True, **fields})
    else:
        verb = "would be deleted" if dry_run else "deleted"
        view.err.line(f"{done.runs:,} run{'s' * (done.runs != 1)} {verb}; the store uses {used / MIB:,.1f} MB")
    return 0
