"""What agents have read, by its flow labels, over all hosts that share the store."""

from __future__ import annotations

from gloveport.rules.labels import LabelledRead
from gloveport.store.database import StoreFile
from gloveport.store.event_log import Statement


def note_read(agent: str, read: LabelledRead, session: str = "") -> Statement:
    """Return the change that notes a read of an agent, or of a session of it."""
    return Statement(
        "INSERT INTO labelled_reads (agent, session, tool, labels, run, at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET run = excluded.run, at = excluded.at",
        (agent, session, read.tool, " ".join(read.labels), read.run, read.at),
    )


class LabelledReads(StoreFile):
    """The labelled reads in the store. Call this in a thread."""

    def of(self, agent: str, since: float) -> list[LabelledRead]:
        """Return what an agent has read since a time (seconds since 1970)."""
        return self._find("session = '' AND at >= ?", agent, since)

    def of_session(self, agent: str, session: str) -> list[LabelledRead]:
        """Return what the runs of a session have read, as long as it is kept."""
        return self._find("session = ?", agent, session)

    def _find(self, which: str, *given: object) -> list[LabelledRead]:
        with self.reading() as connection:
            sql = f"SELECT tool, labels, at, run FROM labelled_reads WHERE agent = ? AND {which}"
            rows = connection.execute(sql, given).fetchall()
        return [LabelledRead(tool, tuple(labels.split()), at, run) for tool, labels, at, run in rows]
