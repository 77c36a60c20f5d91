"""No input holds the host's event loop for more than 50 ms of CPU time, and what is refused gets a clear error (S23).

The known ways stand here one by one. Each entrance of `fuzz/stall` replays its finds and some of its other seeds, and goes on for
ten seconds from a fixed seed. `make fuzz` replays all of them, and goes on for longer, from another seed each time.
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fuzz import campaign
from fuzz.stall import measurement
from fuzz.stall.entrance import MIB
from fuzz.stall.heartbeat import MAX_GAP_SECONDS, Heartbeat
from fuzz.stall.measurement import MeasuredHost
from fuzz.stall.recipe import expand, mutate_recipe
from fuzz.stall.targets import ENTRANCES, TARGETS
from fuzz.target import BrokenPromise, Target

from gloveport.errors import CODES
from tests.stalls import obedient
from tests.test_fuzz import SEED

TOO_COMPLEX = frozenset({"program-too-complex", "syntax-error"})
BAD_VALUE = frozenset({"bad-value", "result-too-large", "frame-too-large"})
NO_SOURCE = frozenset({"source-failed"})
REFUSED_SCHEMA = frozenset({"bad-arguments", "tool-failed", "unknown-tool", "source-failed"})
ANY = frozenset(CODES) - {"internal-error"}

KNOWN_WAYS: dict[str, tuple[str, str, frozenset[str]]] = {
    "an identifier of combining marks in Python": ("programs", "python-combining-marks", TOO_COMPLEX),
    "a parser that is retried": ("programs", "typescript-retries", TOO_COMPLEX),
    "comments that are never closed": ("programs", "typescript-unclosed-comments", TOO_COMPLEX),
    "a Map of colliding integers as a result": ("programs", "map-of-colliding-integers", BAD_VALUE),
    "a Map of colliding integers as an argument": ("programs", "map-of-colliding-integers-as-argument", BAD_VALUE),
    "alternatives by $anchor": ("schemas", "anchors", REFUSED_SCHEMA),
    "alternatives by $id": ("schemas", "ids", REFUSED_SCHEMA),
    "alternatives by percent-encoded pointers": ("schemas", "percent-pointers", REFUSED_SCHEMA),
    "alternatives by dependentSchemas": ("schemas", "dependent-schemas", REFUSED_SCHEMA),
    "alternatives below each property": ("schemas", "nested-fan-out", REFUSED_SCHEMA),
    "overlapping patternProperties": ("schemas", "pattern-properties", REFUSED_SCHEMA),
    "items with contains": ("schemas", "items-contains", REFUSED_SCHEMA),
    "a pattern with repetitions of repetitions": ("schemas", "repeated-pattern", REFUSED_SCHEMA),
    "the same pattern in OpenAPI": ("schemas", "openapi-body", REFUSED_SCHEMA),
    "hundreds of patterns": ("schemas", "many-patterns", REFUSED_SCHEMA),
    "patterns of Unicode classes": ("schemas", "many-unicode", REFUSED_SCHEMA),
    "a version of many digits in a path": ("definitions", "openapi-version-path", NO_SOURCE),
    "an operation id of combining marks": ("definitions", "openapi-marks-operation", NO_SOURCE),
    "a path of combining marks": ("definitions", "openapi-marks-path", NO_SOURCE),
    "a list of MCP tools that has changed": ("definitions", "mcp-changed-list", NO_SOURCE),
    "schemas of thousands of objects in a list of MCP tools": ("definitions", "mcp-wide-schemas", NO_SOURCE),
    "an accepted list of large schemas that has changed": ("definitions", "mcp-changed-schemas", NO_SOURCE),
    "a list of MCP tools with long names": ("definitions", "mcp-long-names", NO_SOURCE),
    "a manual with a URL of many places": ("definitions", "utcp-places", NO_SOURCE),
    "a search for words that all tools have": ("definitions", "mcp-common-words", NO_SOURCE),
    "a run of blanks in a message": ("replies", "graphql-http-error-spaces", frozenset({"http-error"})),
    "a reply of an MCP server in many parts": (
        "replies",
        "mcp-parts",
        frozenset({"reply-too-large", "tool-failed", *BAD_VALUE}),
    ),
    "a reply to fetch that fills a message": ("replies", "fetch-text", frozenset()),
    "a reply to fetch that fits in no message": ("replies", "fetch-too-large", frozenset({"program-failed", *BAD_VALUE})),
    "a redirect of fetch through many folders": ("replies", "fetch-redirect", ANY),
    "settings of many keys": ("commands", "toml-keys", ANY),
    "settings of one key with many parts": ("commands", "toml-dots", ANY),
    "a near miss of a secret": ("replies", "escaped-near-miss", frozenset()),
    "a near miss of a secret in GraphQL": ("replies", "graphql-escaped-near-miss", frozenset()),
    "a project whose definition hangs, for `tools list`": ("commands", "hostile-project-tools", ANY),
    "a project whose definition hangs, for `sources`": ("commands", "hostile-project-sources", ANY),
    "a project whose definition hangs, for `run`": ("commands", "hostile-project-run", ANY),
    "a log of control characters": ("commands", "control-logs", ANY),
    "a log of line ends": ("commands", "line-logs", ANY),
    "a burst of requests on standard input": ("commands", "stdio-burst", ANY),
    "requests on standard input that never end": ("commands", "stdio-listeners", ANY),
    "dates in the outcome of a run": ("people", "dates", ANY),
    "a plan of many writes": ("people", "plan", ANY),
    "a plan of many writes for an agent": ("requests", "plan", ANY),
    "dates that a caller answers": ("sockets", "result-dates", ANY),
    "dates that a program emits to its caller": ("sockets", "emit-dates-plain", ANY),
    "a stream of empty frames": ("frames", "no-frames", frozenset({"wire-violation"})),
    "an argument of a million keys": ("frames", "echo-keys", BAD_VALUE),
    "unknown arguments by the million": ("frames", "extra-keys", BAD_VALUE),
    "a reply of a million keys": ("replies", "keys", frozenset({"reply-too-large", *BAD_VALUE})),
}
"""By what it is: the entrance, its seed, and the codes with which the input may be refused; it may also be accepted."""
REPLAYED_SEEDS = 8  # of the others, for each entrance
KNOWN_SEEDS = {seed for _, seed, _ in KNOWN_WAYS.values()}


@pytest.fixture(scope="module")
def hosts() -> Iterator[dict[str, MeasuredHost]]:
    started = {entrance.name: MeasuredHost(entrance) for entrance in ENTRANCES}
    yield started
    for host in started.values():
        host.close()


@pytest.mark.integration
@pytest.mark.parametrize("way", KNOWN_WAYS)
def test_a_known_way_to_stop_the_loop_is_closed(hosts: dict[str, MeasuredHost], way: str) -> None:
    entrance, seed, codes = KNOWN_WAYS[way]
    seeds = next(each.seeds for each in ENTRANCES if each.name == entrance)
    verdict = hosts[entrance].confirm(seeds[seed])
    assert verdict.seconds <= MAX_GAP_SECONDS, f"{verdict.seconds * 1000:.0f} ms\n{verdict.stacks}"
    assert not verdict.problem
    assert verdict.refusal is None or verdict.refusal[0] in codes, verdict.refusal
    assert verdict.refusal is None or verdict.refusal[1].strip()


@pytest.fixture(params=TARGETS, ids=[target.name for target in TARGETS])
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    yield request.param
    request.param.close()


@pytest.mark.integration
@pytest.mark.timeout(3600)  # of a busy machine: a host that hangs is killed after its CPU time
def test_no_input_of_an_entrance_stops_the_loop(target: Target) -> None:
    known = {json.dumps(each.seeds[seed]).encode() for each in ENTRANCES for seed in each.seeds if seed in KNOWN_SEEDS}
    finds = target.corpus()[len(target.seeds) :]
    others = [seed for seed in target.seeds if seed not in known]
    replayed = [*finds, *others[:: 1 + len(others) // REPLAYED_SEEDS]]
    report = campaign.run(target, seconds=target.test_seconds, seed=SEED, replayed=replayed)
    print(report)  # shown when this fails: the seed that leads there again
    assert report.find is None, str(report)
    assert report.inputs > len(replayed)


# What a measurement must see.


@pytest.fixture(scope="module")
def host() -> Iterator[MeasuredHost]:
    measured = MeasuredHost(obedient.ENTRANCE)
    yield measured
    measured.close()


@pytest.mark.integration
def test_a_loop_that_turns_is_no_find_however_long_it_works(host: MeasuredHost) -> None:
    for way in ("nothing", "spin in slices", "spin in a thread"):
        verdict = host.confirm({"do": way, "seconds": 0.5})
        assert verdict.seconds <= MAX_GAP_SECONDS, way
        assert not verdict.problem


@pytest.mark.integration
def test_a_loop_that_stands_still_is_a_find_that_shows_what_ran(host: MeasuredHost) -> None:
    with pytest.raises(BrokenPromise, match=r"(?s)stood still for \d+ ms.*in spin"):
        host.judge(json.dumps({"do": "spin", "seconds": 0.2}).encode())


@pytest.mark.integration
def test_a_thread_that_holds_the_interpreter_lock_is_a_find(host: MeasuredHost) -> None:
    with pytest.raises(BrokenPromise, match="stood still"):
        host.judge(b'{"do": "hold the lock in a thread", "exponent": 1500000}')


@pytest.mark.integration
def test_a_host_that_hangs_is_killed_and_counts_as_a_find(host: MeasuredHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "MAX_CPU_SECONDS", 0.5)
    assert host.measure({"do": "spin", "seconds": 1000}).seconds >= 0.5
    assert host.measure({"do": "nothing"}).seconds <= MAX_GAP_SECONDS, "the next input gets a new host"


@pytest.mark.integration
@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"do": "refuse", "code": "internal-error", "message": "m"}, "refused with 'internal-error'"),
        ({"do": "refuse", "code": "made-up", "message": "m"}, "refused with 'made-up'"),
        ({"do": "refuse", "code": "bad-value", "message": " "}, "refused with 'bad-value'"),
        ({"do": "raise"}, "ArithmeticError: not declared"),
        ({"do": "die"}, "the host died"),
        ({"do": "spoil"}, "an honest input was refused"),
    ],
)
def test_an_unclear_refusal_a_death_and_a_spoilt_host_are_finds(document: Any, problem: str) -> None:
    host = MeasuredHost(obedient.ENTRANCE)
    try:
        with pytest.raises(BrokenPromise, match=problem):
            host.judge(json.dumps(document).encode())
    finally:
        host.close()


@pytest.mark.integration
def test_a_clear_refusal_is_no_find(host: MeasuredHost) -> None:
    host.judge(b'{"do": "refuse", "code": "bad-value", "message": "too wide"}')
    host.judge(b'{"do": "refuse"}')  # a mutation that lost what the entrance needs
    host.judge(b"no JSON")


def test_a_heartbeat_counts_the_time_before_its_first_beat_and_after_its_last() -> None:
    before = threading.active_count()
    heartbeat = Heartbeat()
    try:
        with heartbeat.measure():
            end = time.process_time() + 5
            while (
                time.process_time() < end and "in spin" not in heartbeat.stacks()
            ):  # the kernel looks at its timer at ticks only
                obedient.spin(0.12)
            asyncio.run(asyncio.sleep(0))
        assert heartbeat.longest > MAX_GAP_SECONDS
        assert "in spin" in heartbeat.stacks()
        with heartbeat.measure():
            time.sleep(0.06)  # the time of others does not count
        assert heartbeat.longest < MAX_GAP_SECONDS
    finally:
        heartbeat.close()
    assert threading.active_count() == before


def test_a_recipe_describes_a_text_and_is_scaled_down_to_fit() -> None:
    recipe = [
        "[",
        {"count": 3, "of": "a<i>-<j>", "join": ","},
        {"times": 2, "of": "x"},
        {"nest": 2, "open": "(", "in": "1", "close": ")"},
    ]
    assert expand(recipe, 1000) == "[a0-1,a1-2,a2-3xx((1))"
    assert expand({"count": 2, "of": "<i> ", "first": 5, "step": 10}, 1000) == "5 15 "
    assert len(expand({"times": 10**12, "of": "abc"}, 1000)) in range(400, 1001)
    for other in (5, {"times": "2", "of": "x"}, {"x": 1}, None):
        with pytest.raises(ValueError, match="no recipe"):
            expand(other, 1000)
    with pytest.raises(ValueError, match="more text"):
        expand("x" * 2000, 1000)


def test_mutations_of_a_seed_scale_it_and_stay_documents() -> None:
    mutate, chance = mutate_recipe(("word",)), random.Random(1)
    seed = json.dumps({"code": {"times": 1000, "of": "abc"}}).encode()
    made = [json.loads(mutate(seed, b'{"code": ["other"]}', chance)) for _ in range(300)]
    assert {"code": {"times": 2000, "of": "abc"}} in made
    assert len({json.dumps(one) for one in made}) > 20


def test_every_seed_is_an_input_of_its_entrance() -> None:
    for entrance in (replace(each, max_bytes=2 * MIB) for each in ENTRANCES):
        for name, seed in {**entrance.seeds, "honest": entrance.honest}.items():
            prepared = entrance.prepared(seed)
            assert any(isinstance(value, str) for value in prepared.values()), name
