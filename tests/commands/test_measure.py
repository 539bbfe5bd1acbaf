"""``labkit measure``: what it prints, for machines whose timings are injected."""

import json

import pytest

from labkit import measure
from labkit.cli import main
from labkit.measure import Comparison, Timing


@pytest.fixture
def noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """A machine whose runs differ by so much; nothing is timed."""
    share: float = request.param
    runs = (1.0, 1 + share, 1 - share)
    tiles = tuple(Timing(f"T={t}", 1000 * t, tuple(t * run for run in runs)) for t in (8, 10, 12))
    walk = (Timing("NCHW", 800, (2.0, 2.0, 2.0)), Timing("NHWC", 100, (1.0, 1.0, 1.0)))
    monkeypatch.setattr(measure, "compare_tiles", lambda size, runs, cache: Comparison(tiles))
    monkeypatch.setattr(measure, "compare_layouts", lambda runs, cache: Comparison(walk))
    return share


@pytest.mark.parametrize("noise", [0.01], indirect=True)
def test_a_clean_machine_gets_a_verdict_and_an_explanation(noise: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure"]) == 0
    text = capsys.readouterr().out
    assert "rank correlation of misses and times: 1.00" in text
    assert text.count("clear enough") == 2
    assert "misses alone often rank tiles poorly here" in text
    assert "T=8               8,000          8 s    1.0%" in text


@pytest.mark.parametrize("noise", [0.5], indirect=True)
def test_a_noisy_machine_is_told_and_is_no_error(noise: float, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure"]) == 0
    text = capsys.readouterr().out
    assert "too noisy to tell: runs of one variant spread by 50.0%, the variants differ by 40.0%" in text
    assert main(["measure", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["tiles"]["too_noisy"], answer["walk"]["too_noisy"]) == (True, False)
    assert answer["spearman"] == 1
    assert [t["median_s"] for t in answer["tiles"]["timings"]] == [8, 10, 12]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--size 3", "size 3: choose 16 to 2048"),
        ("--size 16 --runs 1", "1 runs: at least 3"),
        ("--cache 1000B", "1000 bytes is no multiple"),
        ("--ways 0", "0 ways"),
    ],
)
def test_bad_input_is_one_line_and_status_2(capsys: pytest.CaptureFixture[str], line: str, message: str) -> None:
    assert main(["measure", *line.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
