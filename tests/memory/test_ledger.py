"""The ledger: every figure is a sum of its lines."""

from hypothesis import given
from hypothesis import strategies as st

from labkit.memory.ledger import Access, Ledger, Traffic

accesses = st.builds(
    Access,
    node=st.sampled_from(["conv", "relu"]),
    value=st.sampled_from(["x", "w", "y"]),
    kind=st.sampled_from(["read", "write"]),
    nbytes=st.integers(1, 2**70),
)


@given(st.lists(accesses))
def test_traffic_is_the_sum_over_lines(lines: list[Access]) -> None:
    traffic = Ledger(lines).traffic
    assert traffic.read_bytes == sum(line.nbytes for line in lines if line.kind == "read")
    assert traffic.write_bytes == sum(line.nbytes for line in lines if line.kind == "write")
    assert traffic.nbytes == sum(line.nbytes for line in lines)
    assert (traffic.reads, traffic.writes) == tuple(sum(x.kind == kind for x in lines) for kind in ("read", "write"))
    assert traffic.transfers == len(lines)


@given(st.lists(accesses), st.sampled_from(["node", "value", "kind"]))
def test_groups_add_up_to_the_whole(lines: list[Access], field: str) -> None:
    ledger = Ledger(lines)
    groups = ledger.by(field)
    assert sum(groups.values(), Traffic()) == ledger.traffic
    for key, traffic in groups.items():
        assert traffic == ledger.where(lambda access, key=key: getattr(access, field) == key).traffic


@given(st.lists(accesses), st.lists(accesses))
def test_traffics_add_and_subtract(one: list[Access], two: list[Access]) -> None:
    whole = Ledger([*one, *two]).traffic
    assert Ledger(one).traffic + Ledger(two).traffic == whole
    assert whole - Ledger(one).traffic == Ledger(two).traffic


def test_lines_stay_in_the_order_in_which_they_were_recorded() -> None:
    ledger = Ledger()
    ledger.record("k", "x", "read", 4)
    ledger.record("k", "y", "write", 8)
    assert list(ledger) == [Access("k", "x", "read", 4), Access("k", "y", "write", 8)]
    assert list(ledger.by("value")) == ["x", "y"]


def test_a_transfer_of_no_bytes_leaves_no_line() -> None:
    ledger = Ledger()
    ledger.record("k", "x", "read", 0)
    assert len(ledger) == 0
    assert ledger.traffic == Traffic()
