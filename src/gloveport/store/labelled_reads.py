"""What agents have read, by its flow labels, over all hosts that share the store."""

from __future__ import annotations

from gloveport.rules.labels import LabelledRead
from gloveport.store.database import StoreFile
from gloveport.store.event_log import Statement


def note_read(agent: str, read: LabelledRead) -> Statement:
    """Return the change that notes a read."""
    return Statement(
        "INSERT INTO labelled_reads (agent, tool, labels, run, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET run = excluded.run, at = excluded.at",
        (agent, read.tool, " ".join(read.labels), read.run, read.at),
    )


class LabelledReads(StoreFile):
    """The labelled reads in the store. Call this in a thread."""

    def of(self, agent: str, since: float) -> list[LabelledRead]:
        """Return what an agent has read since a time (seconds since 1970)."""
        found = "SELECT tool, labels, at, run FROM labelled_reads WHERE agent = ? AND session = '' AND at >= ?"
        with self.reading() as connection:
            rows = connection.execute(found, (agent, since)).fetchall()
        return [LabelledRead(tool, tuple(labels.split()), at, run) for tool, labels, at, run in rows]
