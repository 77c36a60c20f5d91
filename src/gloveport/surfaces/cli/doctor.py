"""`gloveport doctor`: what this machine gives the sandbox, and whether an engine that has fallen stays inside it."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import gloveport
from gloveport.errors import CODES, GloveportError, exit_code
from gloveport.sandbox.engines.registry import ENGINES, default_engine
from gloveport.sandbox.jail.strength import JailReport, holds_native_code
from gloveport.sandbox.self_test import SelfTestResult, run_self_test
from gloveport.surfaces.documents import answer_document, write_document
from gloveport.surfaces.terminal import Colour, Stream, clip, stream, visible_line
from gloveport.types import MIB, Strength

MIN_PYTHON = (3, 11)
MACHINES = ("x86_64", "aarch64")
MIN_FREE_BYTES = 64 * MIB
_RANK: dict[Strength, int] = {"none": 0, "kernel": 1, "full": 2}
_MEANING: dict[Strength, str] = {
    "full": "full: namespaces, a root of its own, Landlock and seccomp",
    "kernel": "kernel: Landlock and seccomp, without namespaces",
    "none": "none: Landlock or seccomp is missing",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `fix` says what to do when it is not `ok`."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that doctor found. Without a proof, `checks` says why there is none."""

    minimum: Strength
    checks: tuple[Check, ...]
    proof: SelfTestResult | None

    @property
    def wrong(self) -> GloveportError | None:
        """Why programs can't be run here as the minimum asks; None when they can."""
        proof = self.proof
        failed = [check.name for check in self.checks if not check.ok]
        open_ = [attempt.name for attempt in proof.attempts if not attempt.held] if proof else []
        if not failed and not open_:
            return None
        named = ", ".join([*failed, *open_])
        if proof is not None and any(attempt.escaped for attempt in proof.attempts):
            told = f"The sandbox is NOT sealed ({named})."
        elif failed:
            told = f"The sandbox can't be used as it is ({named})."
        else:
            told = f"No way out was found, but not every one could be tried ({named})."
        return GloveportError(told, code="check-failed", hint=CODES["check-failed"].fix)


def doctor_command(minimum: Strength, *, as_json: bool, color: str) -> int:
    """Show the diagnosis; exit code 0 when all is well, else 1."""
    diagnosis = diagnose(minimum)
    if as_json:
        write_document(stream(sys.stdout, color), document(diagnosis))
    else:
        show(stream(sys.stdout, color), diagnosis)
    return exit_code(diagnosis.wrong.code) if diagnosis.wrong else 0


def diagnose(minimum: Strength) -> Diagnosis:
    """Look at the machine, and try to break out of a sandbox on it."""
    checks = [_python(), _platform(), _engine(), *_space()]
    try:
        proof = asyncio.run(run_self_test())
    except GloveportError as error:
        checks.append(Check("sandbox", False, error.message, error.hint or CODES[error.code].fix))
        return Diagnosis(minimum, tuple(checks), None)
    strength = proof.report.strength
    enough = _RANK[strength] >= _RANK[minimum]
    fixes = [layer.fix for layer in proof.report.layers if not layer.in_force and layer.fix]
    fix = None if enough else (fixes[0] if fixes else f"lower the minimum: --minimum {strength}")
    detail = f"{_MEANING[strength]} (the minimum is {minimum})"
    checks.append(Check("strength", enough, detail, fix))
    if enough:
        checks.append(_python_engine(proof.report))
    return Diagnosis(minimum, tuple(checks), proof)


def _python() -> Check:
    wanted = ".".join(map(str, MIN_PYTHON))
    ok = sys.version_info >= MIN_PYTHON
    return Check("python", ok, platform.python_version(), None if ok else f"use Python {wanted} or later")


def _platform() -> Check:
    machine = platform.machine()
    ok = sys.platform == "linux" and machine in MACHINES
    fix = None if ok else f"use Linux on {' or '.join(MACHINES)}; elsewhere, a Linux container or virtual machine"
    return Check("platform", ok, f"{platform.system()} {platform.release()} on {machine}", fix)


def _engine() -> Check:
    preferred, chosen = ENGINES["deno"], ENGINES[default_engine("typescript")]
    try:
        return Check("engine", True, f"{preferred.name} {preferred.version()}")
    except GloveportError as error:
        if chosen is preferred:
            return Check("engine", False, error.message, error.hint)
        return Check("engine", True, f"{chosen.name} {chosen.version()}: {error.message}")


def _python_engine(report: JailReport) -> Check:
    """Which engine runs Python here when a run names none."""
    if holds_native_code(report):
        return Check("python engine", True, f"cpython {platform.python_version()}")
    reason = "this jail does not hold native code, which cpython runs"
    try:
        return Check("python engine", True, f"monty {ENGINES['monty'].version()}: {reason}")
    except GloveportError as error:
        return Check("python engine", False, f"{reason}, and {error.message}", error.hint)


def _space() -> Iterator[Check]:
    for name, path in (("memory", "/dev/shm"), ("disk", "/tmp")):
        if not os.path.isdir(path):
            yield Check(name, name == "memory", f"there is no {path}", None if name == "memory" else f"make {path}")
            continue
        free = shutil.disk_usage(path).free
        fix = None if free >= MIN_FREE_BYTES else f"free at least {MIN_FREE_BYTES // MIB} MB in {path}"
        yield Check(name, free >= MIN_FREE_BYTES, f"{free // MIB:,} MB free in {path}", fix)


def document(diagnosis: Diagnosis) -> dict[str, object]:
    """The diagnosis as the JSON document of `--json`."""
    proof = diagnosis.proof
    attempts = [asdict(attempt) | {"held": attempt.held} for attempt in proof.attempts] if proof else []
    found = {
        "version": gloveport.__version__,
        "minimum": diagnosis.minimum,
        "strength": proof.report.strength if proof else None,
        "checks": [asdict(check) for check in diagnosis.checks],
        "layers": [asdict(layer) for layer in proof.report.layers] if proof else [],
        "proof": attempts,
    }
    return answer_document(found, diagnosis.wrong)


def show(out: Stream, diagnosis: Diagnosis) -> None:
    """Write the diagnosis for someone in a hurry: marks at the left, the verdict last."""
    out.line("This machine")
    for check in diagnosis.checks:
        _row(out, "✓" if check.ok else "✗", check.name, check.detail, check.fix)
    proof = diagnosis.proof
    if proof is not None:
        out.line("\nThe layers of the jail")
        for layer in proof.report.layers:
            _row(out, "✓" if layer.in_force else "!", layer.name, layer.detail, layer.fix)
        out.line("\nFrom inside, an engine with every permission tried to …")
        for attempt in proof.attempts:
            told = f"{'ESCAPED' if attempt.escaped else 'refused' if attempt.held else 'not proven'}: {attempt.detail}"
            _row(out, "✓" if attempt.held else "✗", attempt.what, told, None, width=40)
    out.line()
    out.line(_verdict(out, diagnosis))


def _row(out: Stream, mark: str, name: str, detail: str, fix: str | None, *, width: int = 13) -> None:
    colours: dict[str, Colour] = {"✓": "green", "✗": "red", "!": "yellow"}
    detail = clip(visible_line(detail), max(8, out.columns - width - 5)) if mark == "✓" else visible_line(detail)
    out.line(f"  {out.paint(mark, colours[mark])} {name:<{width}} {detail}")
    if fix:
        out.line(f"    {'':<{width}} fix: {visible_line(fix)}")


def _verdict(out: Stream, diagnosis: Diagnosis) -> str:
    wrong, proof = diagnosis.wrong, diagnosis.proof
    if wrong is not None or proof is None:
        return f"{out.paint(f'✗ {wrong}', 'red', 'bold')} Apply the fixes above, then: gloveport doctor"
    strength = proof.report.strength
    sealed = f"✓ The sandbox is sealed (strength {strength}): {len(proof.attempts)} ways out tried, none open."
    return f"{out.paint(sealed, 'green', 'bold')} Next: gloveport run -e '1 + 1'"
