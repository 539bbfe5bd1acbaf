"""Schedules of graphs: what they add up, say and write, and what moves when tensors stay on chip."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labkit
from labkit.bodies import fused_node
from labkit.errors import SramOverflow
from labkit.execution import run_scheduled
from labkit.graph import Graph
from labkit.hardware import Hardware
from labkit.memory.dma import DmaCost
from labkit.memory.ledger import Traffic
from labkit.memory.scratchpad import Scratchpad
from labkit.planning import plan
from labkit.scheduling import metadata, schedule
from tests.drafts import OPSETS, Draft

MACHINE = Hardware.preset("edge-npu")


def machine(sram_bytes: int) -> Hardware:
    return replace(MACHINE, sram_bytes=sram_bytes)


def fused(graph: Graph, *lengths: int) -> Graph:
    """The graph with its first so many nodes in one kernel, the next so many in another."""
    nodes, rest = [], list(graph.nodes)
    for number, length in enumerate(lengths):
        group, rest = rest[:length], rest[length:]
        read = {v.name for node in rest for v in node.uses} | graph.output_names
        leave = [v for node in group for v in node.results if v.name in read]
        nodes.append(fused_node(group, leave, f"k{number}", graph.opsets) if len(group) > 1 else group[0])
    return replace(graph, nodes=(*nodes, *rest))


@pytest.fixture
def small(parse) -> Graph:
    rng = np.random.default_rng(0)
    return parse(
        """small (float[1,3,16,16] x) => (float[1,8,8,8] out) {
            y = Conv<pads=[1,1,1,1]>(x, w, b)
            r = Relu(y)
            p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r)
            z = Conv(p, v)
            q = Add(z, p)
            s = Sigmoid(q)
            out = Mul(q, s)
        }""",
        w=rng.standard_normal((8, 3, 3, 3), np.float32),
        b=rng.standard_normal(8).astype(np.float32),
        v=rng.standard_normal((8, 8, 1, 1), np.float32),
    )


def test_the_totals_are_those_of_the_ledger_and_of_the_nodes(small: Graph) -> None:
    found = schedule(small, machine(4096))
    assert found.dram_bytes == found.ledger.traffic.nbytes == sum(node.plan.dram_bytes for node in found)
    assert found.transactions == found.ledger.runs
    assert found.flops == labkit.cost(small, MACHINE).flops
    assert found.high_water_bytes == max(node.plan.working_set_bytes for node in found) <= 4096
    assert found.time_s == pytest.approx(sum(node.time.seconds for node in found))
    assert found.assumed == ()
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert sum(node["dram_bytes"] for node in data["nodes"]) == data["dram_bytes"]


def test_with_enough_sram_the_total_is_that_of_cost(small: Graph) -> None:
    for graph in (small, fused(small, 2, 1, 4)):
        assert schedule(graph, machine(2**30)).dram_bytes == labkit.cost(graph, MACHINE).dram_bytes


def test_fused_kernels_run_as_scheduled(small: Graph) -> None:
    graph = fused(small, 2, 1, 4)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 3, 16, 16), np.float32)}
    wanted = labkit.run(graph, feeds)["out"]
    for sram_bytes in (400, 2000, 2**20):
        arrays = {**graph.constants, **feeds}
        pad = Scratchpad(sram_bytes)
        found = schedule(graph, machine(sram_bytes))
        for node in found:
            arrays |= run_scheduled(node, arrays, pad, graph.opsets)
        np.testing.assert_allclose(arrays["out"], wanted, rtol=1e-5, atol=1e-5)
        assert pad.ledger.traffic == sum((node.traffic for node in found), Traffic())
        by_value = {name: moved.nbytes for name, moved in pad.ledger.by("value").items()}
        assert by_value == {name: moved.nbytes for name, moved in found.ledger.by("value").items()}
        assert pad.high_water_bytes <= found.high_water_bytes <= sram_bytes


def test_a_node_that_cannot_fit_is_named_with_its_numbers(small: Graph) -> None:
    with pytest.raises(
        SramOverflow, match=r"Conv 'y': its smallest tiles take 16 B \(16 bytes\); there are 15 B of SRAM"
    ):
        schedule(small, machine(15))


def test_double_buffers_hide_what_arrives_behind_arithmetic(small: Graph) -> None:
    slow = replace(machine(2**20), peak_flops_per_s=1e9, launch_s=0.0)
    single, double, all_double = (schedule(small, slow, buffers) for buffers in ("single", "double", "double_all"))
    assert single.dram_bytes == double.dram_bytes == all_double.dram_bytes
    moved_s, computed_s = single.dram_bytes / slow.dram_bytes_per_s, single.flops / slow.peak_flops_per_s
    assert single.time_s == pytest.approx(moved_s + computed_s)
    assert double.time_s < single.time_s
    assert all_double.time_s == pytest.approx(
        sum(max(n.traffic.nbytes / slow.dram_bytes_per_s, n.kernel.flops / slow.peak_flops_per_s) for n in all_double)
    )


def test_each_transfer_costs_its_set_up(small: Graph) -> None:
    plain = schedule(small, machine(2000))
    costly = schedule(small, machine(2000), dma=DmaCost.of(MACHINE, setup_s=1e-3))
    assert costly.time_s - plain.time_s == pytest.approx(plain.transactions * 1e-3)


def test_a_schedule_reads_as_loops_over_tiles(small: Graph) -> None:
    text = str(schedule(fused(small, 2, 1, 4), machine(1536)))
    assert text == WRITTEN


WRITTEN = """\
k0 'r': 12.2 KiB in 64 transfers, working set 1.44 KiB, 13.5 µs
    load w 8×3×3×3
    load b 8
    for q in range(0, 16, 8):
        for p in range(0, 16, 1):
            load x 3×3×9
            zero y 8×1×8
            y += x * w
            y += b
            r = Relu(y)
            store r 8×1×8

MaxPool 'p': 10 KiB in 16 transfers, working set 1.25 KiB, 12.7 µs
    for c in range(0, 8, 1):
        load r 1×16×16
        zero p 1×8×8
        p = max(p, r)
        store p 1×8×8

k2 'out': 6.25 KiB in 25 transfers, working set 1 KiB, 11.7 µs
    load v 8×8
    for p in range(0, 8, 1):
        load p 8×1×8
        zero z 8×1×8
        z += p * v
        load p 8×1×8
        q = Add(z, p)
        s = Sigmoid(q)
        out = Mul(q, s)
        store out 8×1×8"""


def test_a_row_that_is_not_cut_is_written_behind_the_tile(parse) -> None:
    graph = parse("g (float[6,32] x) => (float[6,32] y) { y = Softmax<axis=-1>(x) }")
    assert str(schedule(graph, machine(1024))).splitlines()[1:] == [
        "    for i0 in range(0, 6, 4):",
        "        load x 4×32",
        "        y = Softmax(x)",
        "        store y 4×32",
    ]


def test_what_is_written_into_a_file_is_short_text(small: Graph) -> None:
    found = schedule(fused(small, 2, 1, 4), machine(1536))
    first = metadata(found)["r"]
    assert first.keys() == {"labkit.tile", "labkit.order", "labkit.dram_bytes", "labkit.working_set_bytes"}
    assert first["labkit.dram_bytes"] == str(found.nodes[0].plan.dram_bytes)
    assert first["labkit.tile"].startswith("f=8,c=3,p=")
    assert sorted(first["labkit.order"].split(",")) == sorted("fcpqrs")


# ---- tensors that stay on chip


@st.composite
def chains(draw: st.DrawFn) -> Graph:
    """Kernels one after another; some tensors are read again much later."""
    made = draw(st.builds(Draft, st.data()))
    made.draw = draw
    names = [made.given(1, 4, 8, 8)]
    for _ in range(draw(st.integers(2, 8))):
        x = draw(st.sampled_from(names[-3:]))
        same = [name for name in names if made.arrays[name].shape == made.arrays[x].shape]
        kind = draw(st.integers(0, 3))
        if kind == 0:
            side = draw(st.sampled_from([1, 3]))
            weights = made.given(draw(st.sampled_from([2, 4, 8])), made.arrays[x].shape[1], side, side)
            names.append(made.node("Conv", x, weights, pads=[side // 2] * 4))
        elif kind == 1:
            names.append(made.node("Add", x, draw(st.sampled_from(same))))
        elif kind == 2:
            names.append(made.node("Relu", x))
        else:
            names.append(made.node("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]))
    outputs = {names[-1]} | {name for name in names[1:-1] if draw(st.integers(0, 4)) == 0}
    inputs = {v.name for node in made.made for v in node.uses} - {v.name for node in made.made for v in node.results}
    return Graph(
        "chain",
        tuple(made.value(name) for name in made.arrays if name in inputs),
        tuple(made.value(name) for name in made.arrays if name in outputs),
        tuple(made.made),
        opsets=OPSETS,
    )


@settings(deadline=None, max_examples=30)
@given(chains())
def test_what_stays_is_there_from_its_maker_to_its_last_reader_and_never_too_much(graph: Graph) -> None:
    before = None
    for sram_bytes in (512, 1024, 2000, 2048, 3000, 4096, 8192, 65536):
        found = labkit.reside(schedule(graph, machine(sram_bytes)), graph)
        held: dict[str, int] = {}
        read_later = [{v.name for node in graph.nodes[i:] for v in node.uses} for i in range(len(graph.nodes) + 1)]
        moved = 0
        for step, node in enumerate(found.schedule):
            made = {value.name: value.type.nbytes for value in node.node.results}
            held |= {name: size for name, size in made.items() if name in {x.value for x in found.kept}}
            assert dict(node.resident) == held  # simulated: it comes with its maker and goes with its last reader
            assert node.plan.fits
            if held:  # a kernel gives up no room that it moves less with
                assert node.plan.dram_bytes == plan(node.kernel, 2**40).dram_bytes
            assert node.plan.working_set_bytes + sum(held.values()) == node.sram_bytes <= sram_bytes
            moving = {node.names[move.value.name] for move in node.moves}
            assert moving == {v.name for v in (*node.node.uses, *node.node.results)} - held.keys()
            moved += node.traffic.nbytes
            held = {name: size for name, size in held.items() if name in read_later[step + 1]}
        assert not held
        assert moved == found.schedule.dram_bytes == found.before.dram_bytes - found.saved_bytes
        assert not {x.value for x in found.kept} & graph.output_names
        assert before is None or moved <= before
        before = moved
    readers = Counter(value.name for node in graph.nodes for value in {*node.uses})
    borders = [*(v for v in graph.inputs for _ in range(readers[v.name]))]
    borders += [v for v in graph.outputs for _ in range(1 + readers[v.name])]
    dead = [v for node in graph.nodes for v in node.results if not readers[v.name]]
    borders += [v for v in dead if v.name not in graph.output_names]
    assert before == sum(v.type.nbytes for v in borders)  # with plenty of room only these move


def test_an_intermediate_of_the_lesson_stays_where_there_is_room_for_it_and_a_tile(parse) -> None:
    """Spec §4.3 counts 784 KiB as traffic; with room for it and the tiles beside it, it is none."""
    graph = parse(
        """g (float[1,64,56,56] x) => (float[1,64,56,56] out) { y = Relu(x) out = Sigmoid(y) }""",
    )
    size = 802_816
    for sram_bytes, saved in ((size + 3, 0), (size + 4, 2 * size)):  # beside one element, worked on in place
        found = labkit.reside(schedule(graph, machine(sram_bytes)), graph)
        assert found.saved_bytes == saved
        assert [x.needed_bytes for x in found.candidates] == [size + 4]


# ---- energy


def test_energy_is_bytes_and_operations_times_the_table(small: Graph) -> None:
    table = labkit.EnergyTable("t", dram_pj_per_byte=100.0, sram_pj_per_byte=1.0, flop_pj=2.0, sram_bytes_per_flop=4.0)
    for counted in (labkit.cost(small, MACHINE), schedule(small, machine(2000))):
        found = labkit.energy(counted, table)
        assert found.total.dram_j == pytest.approx(counted.dram_bytes * 100e-12)
        assert found.total.compute_j == pytest.approx(counted.flops * 2e-12)
        assert found.total.sram_j == pytest.approx((counted.dram_bytes + 4 * counted.flops) * 1e-12)
        assert found.total.joules == pytest.approx(sum(one.joules for _, one in found))
        assert [name for name, _ in found] == [node.output.name for node in small.nodes]


def test_the_table_of_the_course_is_that_of_its_source() -> None:
    """Horowitz, ISSCC 2014: 640 pJ for 32 bits of DRAM, 10 pJ for 64 bits of an 8 KiB cache, 0.9 and 3.7 pJ."""
    table = labkit.EnergyTable.load()
    assert table.dram_pj_per_byte * 4 == 640
    assert table.sram_pj_per_byte * 8 == 10
    assert table.flop_pj * 2 == pytest.approx(0.9 + 3.7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no energy table in it"),
        ("[t]\ndram_pj_per_byte = 1", "missing or unknown keys: flop_pj, sram_bytes_per_flop, sram_pj_per_byte"),
        ("[t", "not a readable TOML file"),
        (
            "[t]\ndram_pj_per_byte = -1\nsram_pj_per_byte = 1\nflop_pj = 1\nsram_bytes_per_flop = 1",
            "dram_pj_per_byte is -1, it must be a number from 0 on",
        ),
    ],
)
def test_a_bad_energy_table_is_named(tmp_path, text: str, message: str) -> None:
    file = tmp_path / "energy.toml"
    file.write_text(text)
    with pytest.raises(labkit.LabError, match=message):
        labkit.EnergyTable.load(file)
    with pytest.raises(labkit.LabError, match="no such energy file"):
        labkit.EnergyTable.load(tmp_path / "none.toml")
    with pytest.raises(labkit.LabError, match=r"no table \[x\]; there are: cmos-45nm"):
        labkit.EnergyTable.load(name="x")
