"""Networks for guests: empty ones, each for one guest at a time.

To make one and take it apart costs the kernel 0.7 ms, a tenth of what a run in a forked engine takes. So one whose
guest has ended goes to the next. Nothing is left in it: it belongs to the user namespace of the fork server, where no
guest has a privilege with which it could have changed it.
"""

from __future__ import annotations

import os

from gloveport.sandbox.jail.namespaces import NEWNET
from gloveport.sandbox.jail.syscalls import call

_MOST_KEPT = 16


class Networks:
    """The networks of a fork server's guests, as descriptors of namespaces. The fork server itself is in none of them."""

    def __init__(self, proc: int) -> None:
        self._proc = proc
        call("unshare", NEWNET)
        self._own = self._current()
        self._free: list[int] = []

    def take(self) -> int:
        """A network that nobody is in."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, network: int) -> None:
        """Take back the network of a guest that has ended, with all that it started."""
        if len(self._free) < _MOST_KEPT:
            self._free.append(network)
        else:
            os.close(network)

    def _make(self) -> int:
        call("unshare", NEWNET)
        try:
            return self._current()
        finally:
            call("setns", self._own, NEWNET)

    def _current(self) -> int:
        return os.open("self/ns/net", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)


class NoNetworks:
    """Where there are no namespaces: what stands for a network is never looked at."""

    def take(self) -> int:
        """No descriptor."""
        return -1

    def give_back(self, network: int) -> None:
        """Nothing."""
