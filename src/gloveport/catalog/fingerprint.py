"""A fingerprint of a tool's definition: it changes when anything changes that an agent or a person was shown."""

from __future__ import annotations

import hashlib
import json

from gloveport.types import Tool


def fingerprint(tool: Tool) -> str:
    """Return the SHA-256 (hex) of address, description, schemas, kind and writes, independent of the order of keys."""
    shown = [tool.address, tool.description, tool.input_schema, tool.output_schema, tool.kind, tool.writes]
    # The order of keys matters in one place: `properties` defines the positional order of the parameters.
    parameters = list(tool.parameters)
    text = json.dumps([*shown, parameters], sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode()).hexdigest()
