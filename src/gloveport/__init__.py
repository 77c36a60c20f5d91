"""Gloveport runs the programs that AI agents write in a sealed sandbox; their tool calls come out through one port.

text ─► prepare ─► Program ─► sandbox ─► frames ─► bridge ─► policy ─► sources ─► the outside world
                                 ▲                   │          │          │
                                 └──── replies ──────┴── store records every step  ──► replay, audit, web
"""

from __future__ import annotations

TYPE_CHECKING = False  # a key press in a shell waits for this module, and `typing` takes long to load
if TYPE_CHECKING:
    from typing import Any

    from gloveport.approvals.request import Answer, ApprovalRequest
    from gloveport.config import SourceConfig
    from gloveport.errors import GloveportError, OptionError, SandboxError, SourceError, ToolError
    from gloveport.host.port import Gloveport
    from gloveport.rules.budgets import Budget
    from gloveport.rules.rule import EgressRule, Rule
    from gloveport.rules.rules import Rules
    from gloveport.sources.functions import tool
    from gloveport.surfaces.agents.code_tool import code_tool
    from gloveport.surfaces.agents.executor import ExecuteResult, Executor, GloveportExecutor
    from gloveport.types import CallRecord, Divergence, ErrorValue, Event, Failure, Limits, LogLine, Outcome, Usage

__all__ = [
    "Answer",
    "ApprovalRequest",
    "Budget",
    "CallRecord",
    "Divergence",
    "EgressRule",
    "ErrorValue",
    "Event",
    "ExecuteResult",
    "Executor",
    "Failure",
    "Gloveport",
    "GloveportError",
    "GloveportExecutor",
    "Limits",
    "LogLine",
    "OptionError",
    "Outcome",
    "Rule",
    "Rules",
    "SandboxError",
    "SourceConfig",
    "SourceError",
    "ToolError",
    "Usage",
    "code_tool",
    "tool",
]

__version__ = "0.1.0"

_HOMES = {
    "Answer": "approvals.request",
    "ApprovalRequest": "approvals.request",
    "Budget": "rules.budgets",
    "Gloveport": "host.port",
    "EgressRule": "rules.rule",
    "Rule": "rules.rule",
    "Rules": "rules.rules",
    "SourceConfig": "config",
    "code_tool": "surfaces.agents.code_tool",
    "load_ipython_extension": "surfaces.notebook",  # `%load_ext gloveport` calls it
    "unload_ipython_extension": "surfaces.notebook",
    "tool": "sources.functions",
    **dict.fromkeys(("ExecuteResult", "Executor", "GloveportExecutor"), "surfaces.agents.executor"),
} | dict.fromkeys(("GloveportError", "OptionError", "SandboxError", "SourceError", "ToolError"), "errors")


def __getattr__(name: str) -> Any:
    # Names are loaded when they are first used: the command line shows its help, and the fork server starts, without them.
    if name not in __all__ and name not in _HOMES:
        raise AttributeError(f"module 'gloveport' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"gloveport.{_HOMES.get(name, 'types')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
