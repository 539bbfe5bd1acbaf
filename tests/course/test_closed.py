"""What a student may not call: the course's checks and the part of labkit that is to be written."""

from __future__ import annotations

import sys

import pytest

from labkit.course.checks import ex01
from labkit.course.checks.ex01_lines import _crossing
from labkit.course.closed import watched
from labkit.tiling import working_set_bytes


def refuse(function: object, *closed: str) -> None:
    watched(function, closed, ValueError)()  # type: ignore[arg-type]


def test_a_call_into_a_closed_module_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match=r"tile calls working_set_bytes of labkit\.tiling"):
        refuse(tile, "labkit.tiling")


def tile() -> int:
    return working_set_bytes((1, 1, 1))


def test_the_same_call_is_free_where_the_module_is_open_and_names_match_whole_words() -> None:
    refuse(tile)
    refuse(tile, "labkit.til", "labkit.tiling.more")


def test_a_package_is_closed_with_all_that_is_in_it() -> None:
    with pytest.raises(ValueError, match=r"of labkit\.tiling"):
        refuse(tile, "labkit")


def test_the_courses_own_checks_are_always_closed() -> None:
    with pytest.raises(ValueError, match="own check"):
        refuse(lambda: _crossing(3, 4, 64, 0))
    with pytest.raises(ValueError, match="own check"):
        refuse(lambda: ex01.check_strides(tile, None))  # type: ignore[arg-type]


def test_catching_the_refusal_does_not_help() -> None:
    def catches() -> int:
        try:
            return tile()
        except ValueError:
            return 12

    with pytest.raises(ValueError, match=r"labkit\.tiling"):
        refuse(catches, "labkit.tiling")


def test_the_watch_ends_with_the_call_and_leaves_another_profiler_in_place() -> None:
    def other(frame: object, event: str, _: object) -> None:
        pass

    sys.setprofile(other)
    try:
        refuse(lambda: None)
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)
    tile()
