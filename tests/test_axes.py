"""Names of axes and orders."""

import pytest

from labkit.axes import checked_axes, logical_axes, parse_order
from labkit.errors import LabError


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ("NCHW8", "no memory order"),
        ("N C", "no memory order"),
        ("NCHWc", "no memory order"),
        ("NCHW0c", "block of c is 0"),
        ("NHHW", "axis H is named 2 times"),
        ("NHW8c", "axis C, which is missing"),
    ],
)
def test_an_order_that_cannot_be_read_says_why(order, says):
    with pytest.raises(LabError, match=says):
        parse_order(order)


def test_two_axes_may_be_blocked():
    assert parse_order("OIHW16i8o") == (("O", "I", "H", "W", "i", "o"), {"i": 16, "o": 8})


@pytest.mark.parametrize("names", [("N", 1), ("N", "CH"), ("N", ""), ("é",)])
def test_an_axis_name_is_one_letter(names):
    with pytest.raises(LabError, match="one letter"):
        checked_axes(names)


def test_the_logical_order_does_not_depend_on_the_memory_order():
    assert logical_axes("HWIO") == logical_axes("OHWI") == ("O", "I", "H", "W")
    assert logical_axes(("N", "C", "H", "W", "c")) == ("N", "C", "H", "W")
