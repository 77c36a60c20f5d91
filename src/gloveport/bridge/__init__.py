"""Tool calls that come out of a run: look up → validate → decide → (ask a person) → make → record → reply.

Nothing else calls a source (B4).

`bridge` holds what all runs share · `run_bridge` makes, counts and records the calls of one run · `arguments` names and
validates a call's arguments · `schema_cost` bounds what validation may cost · `validation_errors` explains what is wrong
with arguments · `builtins` implements `tools.search`, `tools.describe` and the like · `to_data` copies results as plain
data · `tool_errors` turns exceptions into bounded ToolErrors · `refusals` are the errors of calls
that a rule, a person or a budget refuses · `hints` adds hints to the errors that end a program.
"""

from gloveport.bridge.bridge import Bridge
from gloveport.bridge.run_bridge import RunBridge, RunContext
from gloveport.errors import CallLimit

__all__ = ["Bridge", "CallLimit", "RunBridge", "RunContext"]
