"""Random loop nests, for all tests that hold a simulator to them."""

import hypothesis.strategies as st
import pytest

from labkit.memory.trace import AffineTrace, Loop, Reference

STRIDES = st.sampled_from([0, 0, 1, 4, 8, 60, 64, 68, 128, 256]) | st.integers(-70, 70)


@st.composite
def bodies(draw, counts, overlap, depth=0):
    """A body of references and loops; strides of every size and sign, whole lines and parts of lines."""
    items = []
    for _ in range(draw(st.integers(1, 3))):
        if depth < 3 and draw(st.booleans()):
            items.append(Loop("i", draw(st.sampled_from(counts[depth])), draw(bodies(counts, overlap, depth + 1))))
        else:
            tensor = draw(st.integers(0, 2))
            base = (2**6 if overlap else 2**20) * (tensor + 1) + 2**15 + draw(st.integers(0, 2000))
            strides = tuple(draw(STRIDES) for _ in range(depth))
            items += [Reference(f"t{tensor}", base, strides, draw(st.sampled_from(["read", "write"])))]
            if draw(st.booleans()):  # again the same element, as of an accumulator, or one that is met on later steps
                base += draw(st.integers(0, 4)) * abs(strides[0] if strides else 0)
                items += [Reference(f"t{tensor}", base, strides, draw(st.sampled_from(["read", "write"])))]
    return tuple(items)


@pytest.fixture(scope="session")
def nests():
    """Any nests: tensors that overlap too."""
    counts = ([1, 2, 3, 5, 20],) * 3
    return st.booleans().flatmap(lambda overlap: bodies(counts, overlap)).map(AffineTrace)


@pytest.fixture(scope="session")
def long_nests():
    """Nests with long outer loops, whose tensors share no line: those that repeat themselves."""
    return bodies(([1, 7, 30, 50], [1, 2, 5], [1, 2, 4]), overlap=False).map(AffineTrace)
