"""Sweeps (see ``sweep``) through a set-associative LRU cache, compiled by numba.

While a sweep runs, a set holds first the lines that the present iteration accesses, in any order, then the others,
latest use first. ``own`` says how many the former are, ``uses`` how many entries access each. A *full* set, in which
they may not fit, holds its lines latest use first, as between sweeps.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from labkit.memory.affine import Int64s
from labkit.memory.compiled_crossings import first_crossings, schedule
from labkit.memory.jit import compiled, line_at, pasted, shift_of
from labkit.memory.sweep import Sweep


@pasted
def _line(start, step, iteration, line_bytes, shift):
    return line_at(start + step * iteration, line_bytes, shift)


@pasted
def _set_of(line, sets):
    return line & (sets - uint64(1)) if sets & (sets - uint64(1)) == 0 else line % sets


@compiled
def _touch(tags, first, end, line, write):
    """Access a line of the set, a row of tags as in ``compiled._lru``; return (misses, clean-to-dirty writes)."""
    one = uint64(1)
    shifted, at = tags[first], first
    dirty, miss = uint64(0), 1
    while True:
        tag = tags[at]
        tags[at] = shifted
        if tag >> one == line:
            dirty, miss = tag & one, 0
            break
        shifted = tag
        at += one
        if at == end:
            break
    tags[first] = (line << one) | write | dirty
    return miss, int64(write & ~dirty)


@pasted
def _find(tags, at, end, line):
    while at < end and tags[at] >> uint64(1) != line:
        at += uint64(1)
    return at


@compiled
def _begin(tags, ways, starts, line_bytes, shift, own, uses, full):
    """Count the entries of each line in use after the first iteration; return whether some set is full."""
    some = False
    for e in range(starts.size):
        line = _line(starts[e], 0, 0, line_bytes, shift)
        its = _set_of(line, uint64(own.size))
        first = its * ways
        at = _find(tags, first, first + ways, line)
        if at == first + ways:
            full[its] = some = True
        else:
            uses[at] += 1
            own[its] = max(own[its], int64(at - first) + 1)
    return some


@compiled
def _replay(tags, ways, starts, steps, iteration, line_bytes, shift, only, full):
    """Put the lines that an iteration accessed in order again: in the set ``only``, or if negative in all not full."""
    for e in range(steps.size):
        line = _line(starts[e], steps[e], iteration, line_bytes, shift)
        its = _set_of(line, uint64(full.size))
        if its == uint64(only) if only >= 0 else not full[its]:
            _touch(tags, its * ways, its * ways + ways, line, uint64(0))


@compiled
def _simulate(tags, ways, starts, steps, iteration, line_bytes, shift, chosen, writes, tensors, misses, dirtied):
    """The accesses of an iteration to the chosen sets, one by one."""
    for e in range(steps.size):
        line = _line(starts[e], steps[e], iteration, line_bytes, shift)
        its = _set_of(line, uint64(chosen.size))
        if chosen[its]:
            miss, dirty = _touch(tags, its * ways, its * ways + ways, line, uint64(writes[e]))
            misses[tensors[e]] += miss
            dirtied[tensors[e]] += dirty


@compiled
def _leave(tags, ways, starts, steps, order, begin, end, j, line_bytes, shift, own, uses, full):
    """Entries no longer access their lines; a line that none accesses is the latest of those not in use."""
    for x in range(begin, end):
        e = uint64(order[uint64(x)])
        line = _line(starts[e], steps[e], j, line_bytes, shift)
        its = _set_of(line, uint64(full.size))
        if full[its]:
            continue
        at = its * ways
        while tags[at] >> uint64(1) != line:
            at += uint64(1)
        uses[at] -= 1
        if uses[at] == 0:
            own[its] -= 1
            last = its * ways + uint64(own[its])
            tags[at], tags[last] = tags[last], tags[at]
            uses[at], uses[last] = uses[last], 0


# Long because compiled code takes no records: seventeen arguments, a line each.
@compiled
def _come(
    tags,
    ways,
    starts,
    steps,
    order,
    begin,
    end,
    j,
    line_bytes,
    shift,
    own,
    uses,
    full,
    writes,
    tensors,
    misses,
    dirtied,
):
    """Entries access other lines from now on."""
    one = uint64(1)
    for x in range(begin, end):
        e = uint64(order[uint64(x)])
        line = _line(starts[e], steps[e], j, line_bytes, shift)
        its = _set_of(line, uint64(full.size))
        if full[its]:
            continue
        at, miss = its * ways, 0
        border, past = at + uint64(own[its]), at + ways
        while at < border and tags[at] >> one != line:
            at += one
        if at == border:
            own[its] += 1
            miss, tag, shifted = 1, line << one, tags[at]
            while True:  # the others move up to where it was, or over the one used longest ago
                if shifted >> one == line:
                    miss, tag = 0, shifted
                    break
                at += one
                if at == past:
                    break
                tags[at], shifted = shifted, tags[at]
            at = border
            tags[at] = tag
        uses[at] += 1
        misses[tensors[e]] += miss
        dirtied[tensors[e]] += int64(uint64(writes[e]) & ~tags[at])
        tags[at] |= uint64(writes[e])


@compiled
def _fill(tags, ways, starts, steps, order, begin, end, j, line_bytes, shift, own, full, coming):
    """Find the sets in which the lines of two iterations may not fit; return whether there is a new one."""
    some = False
    for x in range(begin, end):
        e = uint64(order[uint64(x)])
        its = _set_of(_line(starts[e], steps[e], j, line_bytes, shift), uint64(full.size))
        coming[its] += 1
        if not full[its] and own[its] + coming[its] > int64(ways):
            some = True
    for x in range(begin, end):
        e = uint64(order[uint64(x)])
        its = _set_of(_line(starts[e], steps[e], j, line_bytes, shift), uint64(full.size))
        if some and not full[its] and own[its] + coming[its] > int64(ways):
            _replay(tags, ways, starts, steps, j - 1, line_bytes, shift, int64(its), full)
            full[its] = True
        coming[its] = 0
    return some


@compiled
def _sweep(tags, ways, rows, steps, count, line_bytes, shift, writes, tensors, misses, dirtied):
    """See ``sweep``: the first iteration, then for each other what crosses a border, then the last one again."""
    own, full = np.zeros(tags.size // ways, np.int64), np.zeros(tags.size // ways, np.bool_)
    uses, coming = np.zeros(tags.size, np.int32), np.zeros_like(own)
    crossing, offsets = np.empty_like(steps), np.empty_like(steps)
    heads, order = np.zeros(count + 1, np.int64), np.empty(1024, np.int64)
    width = uint64(ways)
    for row in range(rows.shape[0]):
        starts = rows[row]
        own[:], uses[:], full[:] = 0, 0, True
        _simulate(tags, width, starts, steps, 0, line_bytes, shift, full, writes, tensors, misses, dirtied)
        full[:] = False
        some_full = _begin(tags, width, starts, line_bytes, shift, own, uses, full)
        first_crossings(starts, steps, line_bytes, crossing, offsets)
        order = schedule(steps, count, line_bytes, crossing, offsets, heads, order)
        for j in range(1, count):
            begin, end = heads[j], heads[j + 1]
            if begin == end and not some_full:
                continue
            some_full |= _fill(tags, width, starts, steps, order, begin, end, j, line_bytes, shift, own, full, coming)
            _leave(tags, width, starts, steps, order, begin, end, j - 1, line_bytes, shift, own, uses, full)
            _come(
                tags, width, starts, steps, order, begin, end, j, line_bytes, shift, own, uses, full,
                writes, tensors, misses, dirtied,
            )  # fmt: skip
            if some_full:
                _simulate(tags, width, starts, steps, j, line_bytes, shift, full, writes, tensors, misses, dirtied)
        _replay(tags, width, starts, steps, count - 1, line_bytes, shift, -1, full)


def sweep(tags: Int64s, ways: int, each: Sweep, misses: Int64s, dirtied: Int64s) -> None:
    """Run a sweep through the sets in ``tags``, and add to the ``misses`` and clean-to-dirty writes of each tensor."""
    _sweep(
        tags.view(np.uint64), ways, each.starts, each.steps, each.iterations, each.line_bytes,
        shift_of(each.line_bytes), each.writes, each.tensors, misses, dirtied,
    )  # fmt: skip
