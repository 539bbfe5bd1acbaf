"""Exercise 01: misconceptions about strides, views, lines and layouts, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

_STRIDES = 'return tuple(stride[axis] for axis in "NCHW")'
_DOT = "return offset + sum(i * stride for i, stride in zip(index, strides, strict=True))"
_LINES = "len({offset * itemsize // line_bytes for offset in offsets})"
_MOVE = "converted[Layout.dense(shape, target).offsets()] = storage[Layout.dense(shape, source).offsets()]"
_READ = '    ledger.record("convert", "x", "read", storage.nbytes)\n'
_WRITE = '    ledger.record("convert", "x", "write", converted.nbytes)\n'

WRONG = [
    # 1.1
    Wrong("bytes for elements", "1.1", "stride, step = {}, 1", "stride, step = {}, 4", "a stride counts elements"),
    Wrong("listed in memory order", "1.1", _STRIDES, "return tuple(stride[axis] for axis in order)", "listed in memory order"),
    Wrong("from the wrong end", "1.1", "in reversed(order)", "in order", "wrong end"),
    Wrong("order ignored", "1.1", "in reversed(order)", 'in "WHCN"', "does the function use the order"),
    Wrong("N left out", "1.1", _STRIDES, 'return tuple(stride[axis] for axis in "CHW")', "there are four axes"),
    Wrong("a dictionary", "1.1", _STRIDES, "return stride", "expected a tuple or a list"),
    Wrong("floats", "1.1", _STRIDES, 'return [stride[axis] / 1 for axis in "NCHW"]', "whole number: use //"),
    Wrong("printed", "1.1", _STRIDES, "print(stride)", "does the function end with return"),
    Wrong("swapped strides", "1.1", _STRIDES, 'return tuple(stride[axis] for axis in "NCWH")', "some of them swapped|look at the fastest axis"),
    Wrong("labkit's Layout", "1.1", _STRIDES, "return Layout.dense(shape, order).strides", "what you are to write here"),
    # 1.2
    Wrong("offset forgotten", "1.2", "return offset + sum", "return sum", "Look at the third argument"),
    Wrong("bytes for elements", "1.2", _DOT, _DOT.replace("return ", "return 4 * (") + ")", "an offset counts elements"),
    Wrong("strides reversed", "1.2", "zip(index, strides,", "zip(index, strides[::-1],", "the stride at the same place"),
    Wrong("sign lost", "1.2", "i * stride for", "i * abs(stride) for", "do not lose its sign"),
    Wrong("indices added up", "1.2", "i * stride for", "i for", "multiply each index"),
    # 1.3
    Wrong("dense only", "1.3", "wanted = None", "wanted = 1", "one constant step is enough"),
    Wrong("length 1 looked at", "1.3", "        if length == 1:\n            continue\n", "", "never moves"),
    Wrong("gaps overlooked", "1.3", "stride != wanted", "(stride < wanted if wanted > 0 else stride != wanted)", "gap"),
    Wrong("sign lost", "1.3", "stride != wanted", "abs(stride) != abs(wanted)", "backwards"),
    Wrong("memory order", "1.3", "zip(reversed(shape), reversed(strides), strict=True)", "sorted(zip(shape, strides, strict=True), key=lambda x: x[1])", "last axis is walked first"),
    Wrong("always", "1.3", "return False", "pass", "must step exactly"),
    Wrong("never", "1.3", "return True", "return False", "nothing is in the way"),
    Wrong("a word", "1.3", "return True", 'return "view"', "expected True or False"),
    Wrong("no value at the end", "1.3", "    return True", "    pass", "every branch return"),
    # 1.4
    Wrong("fewest lines", "1.4", _LINES, "-(-len(offsets) * itemsize // line_bytes)", "fewest lines"),
    Wrong("offsets as bytes", "1.4", "offset * itemsize // line_bytes", "offset // line_bytes", "the offsets are elements"),
    Wrong("a line each", "1.4", _LINES, "len(offsets)", "fetch it once"),
    Wrong("lines between", "1.4", _LINES, "(max(offsets) * itemsize // line_bytes) - (min(offsets) * itemsize // line_bytes) + 1", "that holds none of them"),
    Wrong("64 bytes assumed", "1.4", "// line_bytes", "// 64", "each single element"),
    # 1.5
    Wrong("end for last byte", "1.5", "first + nbytes - 1", "first + nbytes", "right at a border"),
    Wrong("none", "1.5", "crossing.append(pixel)", "pass", "none at all"),
    Wrong("base forgotten", "1.5", "first = base + pixel", "first = pixel", "look at base"),
    Wrong("how many", "1.5", "return crossing", "return len(crossing)", "not how many"),
    Wrong("from one", "1.5", "append(pixel)", "append(pixel + 1)", "counted from 0"),
    Wrong("backwards", "1.5", "return crossing", "return crossing[::-1]", "ascending"),
    Wrong("elements for bytes", "1.5", "channels * itemsize, []", "channels, []", "line borders are counted in bytes"),
    # 1.6
    Wrong("nothing recorded", "1.6", _READ + _WRITE, "", "nothing was recorded"),
    Wrong("elements for bytes", "1.6", _READ + _WRITE, _READ.replace("nbytes", "size") + _WRITE.replace("nbytes", "size"), "number of elements"),
    Wrong("read only", "1.6", _WRITE, "", "one direction is missing"),
    Wrong("written only", "1.6", _READ, "", "one direction is missing"),
    Wrong("four bytes assumed", "1.6", _READ + _WRITE, _READ.replace("storage.nbytes", "4 * storage.size") + _WRITE.replace("converted.nbytes", "4 * storage.size"), "in its own type"),
    Wrong("read twice", "1.6", "storage.nbytes", "2 * storage.nbytes", "read once and written once"),
    Wrong("a copy", "1.6", _MOVE, "converted[:] = storage", "where they were"),
    Wrong("the other way round", "1.6", _MOVE, "converted[Layout.dense(shape, source).offsets()] = storage[Layout.dense(shape, target).offsets()]", "the other way round"),
    Wrong("zeros", "1.6", _MOVE, "converted[:] = 0", "other values"),
    Wrong("reversed", "1.6", _MOVE, "converted[:] = storage[::-1]", "in another order"),
    Wrong("not flat", "1.6", "return converted", "return converted.reshape(shape)", "memory is flat"),
    Wrong("one too few", "1.6", "return converted", "return converted[1:]", "the tensor has"),
    Wrong("in place", "1.6", "return converted", "storage[:] = converted\n    return storage", "changed the storage"),
    # 1.7
    Wrong("NCHW", "1.7", "return min(orders, key=lines)", 'return "NCHW"', "count the lines of every walk"),
    Wrong("each walk once", "1.7", "sum(times * walked", "sum(walked", "if each walk were made once"),
    Wrong("most walked fastest", "1.7", "return min(orders, key=lines)", 'return "".join(sorted("NCHW", key=lambda x: dict(walks).get(x, 0)))', "the fastest one here"),
    Wrong("most walked slowest", "1.7", "return min(orders, key=lines)", 'return "".join(sorted("WHCN", key=lambda x: -dict(walks).get(x, 0)))', "the slowest one here"),
    Wrong("the most lines", "1.7", "min(orders", "max(orders", "the best order"),
    Wrong("three letters", "1.7", "return min(orders, key=lines)", 'return "NHW"', "four letters"),
    Wrong("a number", "1.7", "return min(orders, key=lines)", "return min(map(lines, orders))", "four letters"),
]  # fmt: skip

RIGHT = [
    Right("a list", "1.1", _STRIDES, 'return [stride[axis] for axis in "NCHW"]'),
    Right("an array", "1.1", _STRIDES, 'return np.array([stride[axis] for axis in "NCHW"])'),
    Right("NumPy's own strides", "1.1", "", "def strides(shape, order):\n    stored = np.zeros([shape['NCHW'.index(x)] for x in order], np.int8)\n    return [stored.transpose([order.index(x) for x in 'NCHW']).strides[i] if shape[i] > 1 else _by_rule(shape, order)[i] for i in range(4)]\n\n\ndef _by_rule(shape, order):\n    return [int(np.prod([shape['NCHW'.index(y)] for y in order[order.index(x) + 1 :]])) for x in 'NCHW']"),
    Right("recursion", "1.1", "", "def strides(shape, order):\n    def step(axis):\n        at = order.index(axis)\n        return 1 if at == 3 else step(order[at + 1]) * shape['NCHW'.index(order[at + 1])]\n\n    return tuple(map(step, 'NCHW'))"),
    Right("NumPy's dot", "1.2", _DOT, "return offset + np.dot(index, strides)"),
    Right("a loop that prints", "1.2", _DOT, "for i, stride in zip(index, strides):\n        offset += i * stride\n        print(offset)\n    return offset"),
    Right("NumPy as the judge", "1.3", "", "def can_flatten(shape, strides):\n    base = np.zeros(20000, np.int8)\n    view = np.lib.stride_tricks.as_strided(base[10000:], shape, strides)\n    return np.bool_(np.shares_memory(view.reshape(-1), base))"),
    Right("differences of all offsets", "1.3", "", "def can_flatten(shape, strides):\n    offsets = [np.dot(i, strides) for i in np.ndindex(*shape)]\n    return bool(len(np.unique(np.diff(offsets))) <= 1)"),
    Right("NumPy's unique", "1.4", _LINES, "np.unique(np.array(offsets) * itemsize // line_bytes).size"),
    Right("shifts", "1.4", _LINES, "len({(offset * itemsize) >> (line_bytes.bit_length() - 1) for offset in offsets})"),
    Right("a tuple", "1.5", "return crossing", "return tuple(crossing)"),
    Right("NumPy", "1.5", "", "def straddling_pixels(pixels, channels, itemsize, line_bytes, base=0):\n    first = base + np.arange(pixels) * channels * itemsize\n    return np.flatnonzero(first // line_bytes != (first + channels * itemsize - 1) // line_bytes)"),
    Right("byte by byte", "1.5", "", "def straddling_pixels(pixels, channels, itemsize, line_bytes, base=0):\n    n = channels * itemsize\n    return [p for p in range(pixels) if len({(base + p * n + b) // line_bytes for b in range(n)}) > 1]"),
    Right("an entry for each element, and a list", "1.6", "", "def convert(storage, shape, source, target, ledger):\n    old, new = Layout.dense(shape, source), Layout.dense(shape, target)\n    result = [0] * storage.size\n    for index in np.ndindex(*shape):\n        result[new.offset_of(*index)] = storage[old.offset_of(*index)]\n        ledger.record('copy', 'in', 'read', storage.itemsize)\n        ledger.record('copy', 'out', 'write', np.int64(storage.itemsize))\n    return result"),
    Right("NumPy's transpose", "1.6", _MOVE, "stored = storage.reshape([shape['NCHW'.index(x)] for x in source])\n    converted = stored.transpose([source.index(x) for x in target]).ravel()"),
    Right("float64 out", "1.6", "return converted", "return converted.astype(np.float64)"),
    Right("a list of letters", "1.7", "return min(orders, key=lines)", "return list(min(orders, key=lines))"),
    Right("the last of the best", "1.7", "return min(orders, key=lines)", "return min(reversed(list(orders)), key=lines)"),
    Right("a closed form", "1.7", "", "def choose_order(shape, walks, itemsize, line_bytes):\n    from itertools import permutations\n\n    def cost(order):\n        by_axis = dict(zip('NCHW', strides(shape, order)))\n        length = dict(zip('NCHW', shape))\n        return sum(t * min(length[x], (length[x] - 1) * by_axis[x] * itemsize // line_bytes + 1) for x, t in walks)\n\n    return ''.join(min(permutations('NCHW'), key=cost))"),
    Right("by the specification", "1.1", "", """\
def strides(shape, order):
    longer = [tuple(length + (i == axis) for i, length in enumerate(shape)) for axis in range(4)]
    return [numbered(longer[axis], order)[tuple(int(i == axis) for i in range(4))] for axis in range(4)]
"""),
    Right("by the specification", "1.5", "", """\
def straddling_pixels(pixels, channels, itemsize, line_bytes, base=0):
    found = set(lines_of(pixels, channels, itemsize, line_bytes, base))
    return [pixel for pixel in range(pixels) if sum(owner == pixel for owner, _ in found) > 1]
"""),
]  # fmt: skip
