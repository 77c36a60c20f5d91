"""What `make bench` publishes follows from what it measured. No time is judged here."""

import pytest
from benchmarks.bars import missed
from benchmarks.beside_others import PROGRAMS, Figures, losses, section
from benchmarks.peers import CONTENDERS, PeerError, Running
from benchmarks.probes import Verdict

OURS = next(one for one in CONTENDERS if one.engine == "cpython" and not one.check_types)
PEER = next(one for one in CONTENDERS if one.packages)


def _figures(contender, seconds: float, *, held: bool = True) -> Figures:
    verdicts = {"a file of the host": Verdict(held, "")}
    times = {program: [seconds] for program in PROGRAMS}
    return Figures(contender, seconds=times, rates=[1 / seconds], cpu=[1.0], verdicts=verdicts)


@pytest.mark.parametrize(
    ("ours", "ratio", "bar", "count"),
    [
        ("5 ms", "1.99 ×", "≤ 2.0 ×", 0),
        ("5 ms", "2.01 ×", "≤ 2.0 ×", 1),
        ("41 /s", "0.61 ×", "≥ 0.8 ×", 1),
        ("0.9 s, 162 MB", "4.0 ×", "≤ 1 s, ≤ 150 MB", 1),
        ("4.2 MB", "+1.5 MB", "≤ +2 MB", 0),
        ("1,081 tokens", "", "≤ 1,000 tokens", 1),
        ("7 ms", "", "", 0),
    ],
)
def test_a_row_that_misses_its_bar_is_named(ours: str, ratio: str, bar: str, count: int) -> None:
    assert len(missed([("a row", ours, "", ratio, bar)])) == count


def test_a_peer_that_is_faster_is_named_together_with_what_it_does_not_hold() -> None:
    told = "\n".join(losses([_figures(OURS, 0.2), _figures(PEER, 0.1, held=False)]))
    assert told.count(f"{PEER.name} 100 ms (which does not hold a file of the host)") == len(PROGRAMS)


def test_a_peer_that_is_slower_is_not_named() -> None:
    assert PEER.name not in "\n".join(losses([_figures(OURS, 0.1), _figures(PEER, 0.2)]))


def test_a_peer_that_could_not_be_installed_has_a_row_that_says_so() -> None:
    absent = Figures(PEER, problem="could not be installed: no such version")
    text = section([_figures(OURS, 0.1), absent])
    assert f"| {PEER.name} | could not be installed: no such version |" in text
    assert "No peer could be measured" in text


@pytest.mark.integration
async def test_a_contender_answers_over_its_pipe_and_tells_of_failures() -> None:
    running = await Running(OURS).start()
    try:
        assert await running.run(OURS.programs.calls) == "number 6"
        assert await running.run(OURS.programs.hundred) == 100
        with pytest.raises(PeerError, match="division"):
            await running.run("1 / 0")
    finally:
        await running.close()
