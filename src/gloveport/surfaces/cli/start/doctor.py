"""`gloveport doctor`: checks what this machine offers the sandbox, and whether a compromised engine stays inside it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import gloveport
from gloveport.errors import CODES, GloveportError, exit_code
from gloveport.sandbox.engines.registry import ENGINES, default_engine
from gloveport.sandbox.jail.strength import STRENGTH_MEANING, JailReport, holds_native_code
from gloveport.sandbox.self_test import SelfTestResult, run_self_test
from gloveport.surfaces.cli.start.surroundings import Finding, surroundings
from gloveport.surfaces.documents import answer_document, write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Colour, Stream, stream, visible_line
from gloveport.types import MIB, Strength

MIN_PYTHON = (3, 11)
MACHINES = ("x86_64", "aarch64")
MIN_FREE_BYTES = 64 * MIB
_STRENGTH_RANK: dict[Strength, int] = {"none": 0, "kernel": 1, "full": 2}


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check; `fix` says what to do if it is not `ok`."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that doctor found. If the self-test could not run, `checks` says why."""

    minimum: Strength
    checks: tuple[Check, ...]
    self_test: SelfTestResult | None
    around: tuple[Finding, ...] = ()

    @property
    def problem(self) -> GloveportError | None:
        """The error that names the failed checks and escapes; None if programs can be run here at the minimum strength."""
        self_test = self.self_test
        failed = [check.name for check in self.checks if not check.ok]
        open_ = [attempt.name for attempt in self_test.attempts if not attempt.held] if self_test else []
        if not failed and not open_:
            return None
        named = ", ".join([*failed, *open_])
        if self_test is not None and any(attempt.escaped for attempt in self_test.attempts):
            verdict = f"The sandbox is NOT sealed ({named})."
        elif failed:
            verdict = f"The sandbox does not meet the requirements ({named})."
        else:
            verdict = f"No escape was found, but not all could be tried ({named})."
        return GloveportError(verdict, code="check-failed", hint=CODES["check-failed"].fix)


def doctor_command(minimum: Strength, *, as_json: bool, color: str) -> int:
    """Show the diagnosis; return 0 if everything is fine, else 1."""
    diagnosis = replace(diagnose(minimum), around=run_interruptible(surroundings()))
    if as_json:
        write_document(stream(sys.stdout, color), document(diagnosis))
    else:
        show(stream(sys.stdout, color), diagnosis)
    return exit_code(diagnosis.problem.code) if diagnosis.problem else 0


def diagnose(minimum: Strength) -> Diagnosis:
    """Check the machine, and try to break out of a sandbox on it."""
    checks = [_python(), _platform(), _engine(), *_space()]
    try:
        self_test = run_interruptible(run_self_test())
    except GloveportError as error:
        checks.append(Check("sandbox", False, error.message, error.hint or CODES[error.code].fix))
        return Diagnosis(minimum, tuple(checks), None)
    strength = self_test.report.strength
    enough = _STRENGTH_RANK[strength] >= _STRENGTH_RANK[minimum]
    fixes = [layer.fix for layer in self_test.report.layers if not layer.in_force and layer.fix]
    fix = None if enough else (fixes[0] if fixes else f"lower the minimum: --minimum {strength}")
    detail = f"{STRENGTH_MEANING[strength]} (the minimum is {minimum})"
    checks.append(Check("strength", enough, detail, fix))
    if enough:
        checks.append(_python_engine(self_test.report))
    return Diagnosis(minimum, tuple(checks), self_test)


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
    """Check which engine runs Python here if a run names none."""
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
    """Return the diagnosis as the JSON document of `--json`."""
    self_test = diagnosis.self_test
    attempts = [asdict(attempt) | {"held": attempt.held} for attempt in self_test.attempts] if self_test else []
    found = {
        "version": gloveport.__version__,
        "minimum": diagnosis.minimum,
        "strength": self_test.report.strength if self_test else None,
        "checks": [asdict(check) for check in diagnosis.checks],
        "layers": [asdict(layer) for layer in self_test.report.layers] if self_test else [],
        "proof": attempts,
        "around": [asdict(finding) for finding in diagnosis.around],
    }
    return answer_document(found, diagnosis.problem)


def show(out: Stream, diagnosis: Diagnosis) -> None:
    """Write the diagnosis: marks at the left, the verdict last."""
    out.line("This machine")
    for check in diagnosis.checks:
        _row(out, "✓" if check.ok else "✗", check.name, check.detail, check.fix)
    self_test = diagnosis.self_test
    if self_test is not None:
        out.line("\nThe layers of the jail")
        for layer in self_test.report.layers:
            _row(out, "✓" if layer.in_force else "!", layer.name, layer.detail, layer.fix)
        out.line("\nFrom inside, an engine with every permission tried to …")
        for attempt in self_test.attempts:
            result = f"{'ESCAPED' if attempt.escaped else 'refused' if attempt.held else 'not tested'}: {attempt.detail}"
            _row(out, "✓" if attempt.held else "✗", attempt.what, result, None, width=40)
    out.line("\nAround it")
    for finding in diagnosis.around:
        _row(out, "✓" if finding.ok else "!", finding.name, finding.detail, finding.fix)
    out.line()
    out.line(out.fold(_verdict(out, diagnosis), "  "))


def _row(out: Stream, mark: str, name: str, detail: str, fix: str | None, *, width: int = 13) -> None:
    detail = as_typed(detail)
    colours: dict[str, Colour] = {"✓": "green", "✗": "red", "!": "yellow"}
    indent = " " * (width + 5 if out.columns > 2 * width else 6)
    out.line(out.fold(f"  {out.paint(mark, colours[mark])} {name:<{width}} {visible_line(detail)}", indent))
    if fix:
        out.line(out.fold(f"    {'':<{width}} fix: {visible_line(as_typed(fix))}", indent))


def _verdict(out: Stream, diagnosis: Diagnosis) -> str:
    problem, self_test = diagnosis.problem, diagnosis.self_test
    if problem is not None or self_test is None:
        return f"{out.paint(f'✗ {problem}', 'red', 'bold')} Apply the fixes above, then: {as_typed('gloveport doctor')}"
    strength = self_test.report.strength
    sealed = f"✓ The sandbox is sealed (strength {strength}): {len(self_test.attempts)} escapes tried, none succeeded."
    first = as_typed("gloveport run -e '1 + 1'")
    return f"{out.paint(sealed, 'green', 'bold')} Next: {first}"
