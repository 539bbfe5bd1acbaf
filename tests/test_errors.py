import pytest

from labkit import errors
from labkit.errors import LabError


@pytest.mark.parametrize("kind", [LabError, *LabError.__subclasses__()])
def test_an_error_of_ours_shows_in_a_notebook_as_one_sentence_without_a_traceback(kind):
    assert kind("axis 2 has 3 elements, 4 were asked for")._render_traceback_() == [
        f"{kind.__name__}: axis 2 has 3 elements, 4 were asked for"
    ]


def test_every_error_of_ours_is_one_that_a_user_can_catch():
    own = [value for value in vars(errors).values() if isinstance(value, type)]
    assert all(issubclass(kind, LabError) for kind in own)
