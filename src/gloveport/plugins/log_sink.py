"""The plugin `log_sink`: writes a line of JSON for each run that ends, and for each of its calls, to a file."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gloveport.errors import OptionError
from gloveport.plugins.hooks import StartingRun, hook
from gloveport.types import CallRecord, Outcome

OPTIONS = ("file", "arguments")


class LogSink:
    """Appends to the option `file`, which only its owner can read. Arguments are left out without `arguments = true`."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        file, arguments = options.get("file"), options.get("arguments", False)
        unknown = [name for name in options if name not in OPTIONS]
        if unknown or not isinstance(file, str) or not file or not isinstance(arguments, bool):
            problem = f"log_sink does not know the option {unknown[0]}" if unknown else "log_sink needs a file"
            raise OptionError(problem, hint='write plugins = [{plugin = "log_sink", file = "/var/log/runs.jsonl"}]')
        self._file = Path(file).expanduser().absolute()
        self._arguments = arguments

    @hook
    async def after_run(self, run: StartingRun, outcome: Outcome) -> None:
        """Write the lines of a run at once, so that those of concurrent runs and hosts do not mix."""
        about = {"at": round(time.time(), 3), "run": run.run, "agent": run.agent}
        lines = [{**about, "kind": "call", **self._call(call)} for call in outcome.calls]
        error = None if outcome.error is None else {"code": outcome.error.code, "message": outcome.error.message}
        usage = {"seconds": round(outcome.usage.wall_seconds, 6), "cpu_seconds": round(outcome.usage.cpu_seconds, 6)}
        end = {"kind": "run", "language": run.language, "status": outcome.status, "error": error, **usage}
        lines.append({**about, **end, "calls": len(outcome.calls), "warnings": list(outcome.warnings)})
        text = "".join(f"{json.dumps(line, default=str)}\n" for line in lines)
        await asyncio.to_thread(self._append, text.encode())

    def _call(self, call: CallRecord) -> dict[str, Any]:
        approver = None if call.approval is None else call.approval.approver
        said = {
            "tool": call.tool,
            "status": call.status,
            "seconds": call.seconds,
            "error": call.error,
            "approver": approver,
        }
        return said | ({"args": call.args} if self._arguments else {})

    def _append(self, text: bytes) -> None:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, text)
        finally:
            os.close(descriptor)
