"""`python -m fuzz [TARGET …] [--seconds 60] [--seed N] [--keep]` exits with 1 when a target breaks its promise.

A find is written to `fuzz/corpus/<target>/`, and later campaigns try it first. `--keep` also writes inputs that took new paths.
"""

from __future__ import annotations

import argparse
import faulthandler
import secrets
import sys

from fuzz import campaign
from fuzz.targets import TARGETS

HANG_SECONDS = 900  # beyond a target's own time: it hangs where no signal reaches it, so print its stack and exit


def main() -> int:
    """Run the campaigns one after the other."""
    options = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    options.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(target.name for target in TARGETS))
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--keep", action="store_true")
    chosen = options.parse_args()
    unknown = set(chosen.targets) - {target.name for target in TARGETS}
    if unknown:
        options.error(f"unknown target: {', '.join(sorted(unknown))}")
    failed = 0
    for target in TARGETS:
        if chosen.targets and target.name not in chosen.targets:
            continue
        seed = secrets.randbits(32) if chosen.seed is None else chosen.seed
        faulthandler.dump_traceback_later(chosen.seconds + HANG_SECONDS, exit=True)
        print(f"{target.name}: seed {seed} …", end="\r", flush=True)
        report = campaign.run(target, seconds=chosen.seconds, seed=seed)
        target.close()
        faulthandler.cancel_dump_traceback_later()
        print(report, flush=True)
        if report.find is not None:
            failed += 1
            print(f"kept as {campaign.keep(target, report.find.data, 'find')}", flush=True)
        if chosen.keep:
            for data in report.kept:
                campaign.keep(target, data)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
