"""A call coming out of a run: look up → validate → decide → make → record → reply. Nothing else calls a source (B4)."""

from gloveport.bridge.bridge import Bridge
from gloveport.bridge.run_bridge import RunBridge
from gloveport.errors import CallLimit

__all__ = ["Bridge", "CallLimit", "RunBridge"]
