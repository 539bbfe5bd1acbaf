"""Sizes and rates, printed and parsed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import LabError
from labkit.units import format_bytes, format_count, format_rate, format_seconds, parse_bytes


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("512KiB", 524_288), ("512 kib", 524_288), ("1.5MiB", 1_572_864), ("2GiB", 2**31), ("64kB", 64_000),
        ("1MB", 1_000_000), ("7", 7), ("7B", 7), (4096, 4096), (" 0.5 KiB ", 512), ("1e0", None), ("512XB", None),
        ("", None), ("-4", None), (-4, None), ("0", None), ("0.3B", None), ("1.0001KiB", None), ("KiB", None),
        ("nan", None), ("inf", None), ("1,024", None),
    ],
)  # fmt: skip
def test_sizes_are_read_with_their_unit_or_refused(text: str | int, nbytes: int | None) -> None:
    if nbytes is None:
        with pytest.raises(LabError):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == nbytes


def test_a_refusal_says_what_would_be_right() -> None:
    with pytest.raises(LabError, match=r"'512XB' is no size.*KiB.*for example 512KiB"):
        parse_bytes("512XB")


@given(st.integers(1, 2**53))
def test_plain_bytes_are_read_back_unchanged(nbytes: int) -> None:
    assert parse_bytes(nbytes) == parse_bytes(f"{nbytes} B") == nbytes


@given(st.integers(1, 1023), st.sampled_from(["B", "KiB", "MiB", "GiB"]))
def test_what_is_printed_without_rounding_is_read_back(number: int, unit: str) -> None:
    nbytes = parse_bytes(f"{number} {unit}")
    assert format_bytes(nbytes) == f"{number} {unit}"
    assert parse_bytes(format_bytes(nbytes)) == nbytes


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (802_816, "784 KiB"), (3_211_264, "3.06 MiB"), (-2048, "-2 KiB")],
)
def test_bytes_are_printed_in_binary_units(nbytes: int, text: str) -> None:
    assert format_bytes(nbytes) == text


def test_rates_and_counts_are_printed_in_decimal_units() -> None:
    assert format_rate(3.75e9, "B/s") == "3.75 GB/s"
    assert format_count(2**31) + "FLOP" == "2.15 GFLOP"
    assert format_count(999) + "FLOP" == "999 FLOP"


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (2.5e-6, "2.5 µs"), (3e-9, "3 ns"), (0.0, "0 ns")]
)
def test_times_are_printed_in_their_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
