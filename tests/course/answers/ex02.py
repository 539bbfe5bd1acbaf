"""Exercise 02: misconceptions about tiles, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

WRONG = [
    # 2.1
    Wrong("C forgotten", "2.1", "elements >= 3 *", "elements >= 2 *", "room for two tiles"),
    Wrong("one tile only", "2.1", "elements >= 3 *", "elements >=", "room for one tile"),
    Wrong("bytes for elements", "2.1", " // itemsize", "", "if each had one byte"),
    Wrong("KB for KiB", "2.1", "sram_kib * 1024", "sram_kib * 1000", "how many bytes has a KiB"),
    Wrong("KiB for bytes", "2.1", "sram_kib * 1024", "sram_kib", "given in KiB"),
    Wrong("rounded up", "2.1", "return T", "return T + 1", "round down"),
    Wrong("area for edge", "2.1", "return T", "return elements // 3", "its edge is asked"),
    Wrong("double buffers assumed", "2.1", "elements >= 3 *", "elements >= 5 *", "single buffers"),
    Wrong("power of two", "2.1", "return T", "return 1 << T.bit_length() - 1", "power of two"),
    Wrong("a float", "2.1", "return T", "return (elements / 3) ** 0.5", "expected a whole number"),
    Wrong("nothing returned", "2.1", "return T", "print(T)", "does the function end with return"),
    Wrong(
        "labkit's own formula", "2.1", "return T",
        "from labkit.tiling import largest_square_tile\n    return largest_square_tile(sram_kib * 1024, itemsize)",
        "that is what you are to write here",
    ),
    # 2.2
    Wrong("elements for bytes", "2.2", " * itemsize", "", "measured in bytes"),
    Wrong("C forgotten", "2.2", "arriving + tm * tn", "arriving", "where are their products added up"),
    Wrong(
        "C doubled", "2.2", "(arriving + tm * tn)", "(arriving + (2 if double else 1) * tm * tn)",
        "does a tile of C arrive with each step",
    ),
    Wrong("double ignored", "2.2", "if double:", "if False:", "without double buffers"),
    Wrong("always double", "2.2", "if double:", "if True:", "where single ones are asked"),
    Wrong("all tiles TM × TN", "2.2", "tm * tk + tk * tn", "2 * tm * tn", "which two of the three sizes"),
    Wrong("TM, TK, TN", "2.2", "tm, tn, tk = tile", "tm, tk, tn = tile", "which axes are C's own"),
    Wrong("KiB", "2.2", "* itemsize", "* itemsize // 1024", "in bytes, please"),
    Wrong("A doubled only", "2.2", "arriving *= 2", "arriving += tm * tk", "how many of each"),
    # 2.3
    Wrong("MAC for FLOP", "2.3", "return 2 * m", "return m", "one multiply-accumulate"),
    Wrong("C forgotten", "2.3", " + m * n)", ")", "the result is missing"),
    Wrong("C read as well", "2.3", " + m * n)", " + 2 * m * n)", "starts at zero"),
    Wrong("C spilled", "2.3", " + m * n)", " + m * n * -(-k // tile[2]))", "at every step of k"),
    Wrong("elements for bytes", "2.3", " * itemsize)", ")", "per element"),
    Wrong("floor of the edge tiles", "2.3", "-(-n // tn)\n    of_b = k * n * -(-m // tm)",
          "(n // tn)\n    of_b = k * n * (m // tm)", "the last, smaller tiles are forgotten"),
    Wrong("edge tiles at full size", "2.3", "return", "f = 2 * m * n * k\n    m, n, k = (-(-s // t) * t for s, t in zip((m, n, k), tile))\n"
          "    of_a, of_b = m * k * n // tn, k * n * m // tm\n    return f / "
          "((of_a + of_b + m * n) * itemsize)\n    return", "counted at full size|as small as what is left"),
    Wrong("each matrix once", "2.3", "m * k * -(-n // tn)\n    of_b = k * n * -(-m // tm)", "m * k\n    of_b = k * n",
          "endless SRAM"),
    Wrong("one step only", "2.3", "return 2", "t = tile\n    return 2 * t[0] * t[1] * t[2] / "
          "(itemsize * (t[0] * t[2] + t[2] * t[1]))\n    return 2", "one step of k alone"),
    Wrong("upside down", "2.3", "return 2 * m * n * k / (", "return 1 / (2 * m * n * k) * (", "the other way round"),
    Wrong("A again for each row", "2.3", "-(-n // tn)\n    of_b = k * n * -(-m // tm)",
          "-(-m // tm)\n    of_b = k * n * -(-n // tn)", "the axis that A does not have"),
    # 2.4
    Wrong("matmul of whole arrays", "2.4", "tm, tn, tk = tile", "return np.matmul(A, B)", "nothing went through the pad"),
    Wrong("matmul, and a formula in the ledger", "2.4", "tm, tn, tk = tile",
          'pad.ledger.record("f", "A", "read", A.nbytes)\n    return A @ B', "no place for a formula"),
    Wrong("matmul behind real transfers", "2.4", "    return C", "    return A @ B", "still lie in DRAM"),
    Wrong("computes in DRAM", "2.4", "c += a @ b", "c += A[i : i + tm, s : s + tk] @ b", "still lie in DRAM"),
    Wrong("k outermost", "2.4", "", """\
def tiled_matmul(A, B, tile, pad):
    tm, tn, tk = tile
    C = np.zeros((len(A), B.shape[1]), np.float32)
    for s in range(0, len(B), tk):
        for i in range(0, len(A), tm):
            for j in range(0, B.shape[1], tn):
                block = C[i : i + tm, j : j + tn]
                c = pad.load("C", block)
                c += pad.load("A", A[i : i + tm, s : s + tk]) @ pad.load("B", B[s : s + tk, j : j + tn])
                pad.store("C", block)
                for name in "ABC":
                    pad.free(name)
    return C
""", "the stores move|when is a sum complete"),
    Wrong("C stored at each step", "2.4", "                pad.free(\"A\")",
          "                pad.store(\"C\", block)\n                pad.free(\"A\")", "when is a sum complete"),
    Wrong("C read first", "2.4", 'pad.alloc("C", block.shape, np.float32)', 'pad.load("C", block)', "start at zero"),
    Wrong("C never stored", "2.4", '            pad.store("C", block)\n', "            block[:] = c\n", "0 were stored"),
    Wrong("nothing in C", "2.4", '            pad.store("C", block)\n', "", "nothing of it is in DRAM"),
    Wrong("sums overwritten", "2.4", "c += a @ b", "c[:] = a @ b", "each step adds"),
    Wrong("floor of the edge tiles", "2.4", "range(0, m, tm)", "range(0, m // tm * tm, tm)", "rounded up"),
    Wrong("last step of k lost", "2.4", "range(0, k, tk)", "range(0, k // tk * tk, tk)", "step of k is missing"),
    Wrong("A loaded twice", "2.4", "                b = pad",
          "                pad.free(\"A\")\n                a = pad.load(\"A\", A[i : i + tm, s : s + tk])\n"
          "                b = pad", "reading A moves|already"),
    Wrong("whole rows of A", "2.4", "A[i : i + tm, s : s + tk])", "A[i : i + tm])[:, s : s + tk]", "are free|larger than a tile"),
    Wrong("nothing freed", "2.4", '                pad.free("A")\n                pad.free("B")\n', "", "on chip already"),
    Wrong("used after free", "2.4", '                c += a @ b\n                pad.free("A")\n',
          '                pad.free("A")\n                c += a @ b\n', "a tile that was freed"),
    Wrong("labkit's own kernel", "2.4", "tm, tn, tk = tile",
          "from labkit.kernels.matmul import tiled_matmul as own\n    return own(A, B, tile, pad)",
          "that is what you are to write here"),
    # 2.5
    Wrong("single buffers", "2.5", "", "double_buffered = tiled_matmul", "nothing could be computed meanwhile"),
    Wrong("room reserved only", "2.5", "", """\
def double_buffered(A, B, tile, pad):
    tm, tn, tk = tile
    C = np.zeros((len(A), B.shape[1]), np.float32)
    for i in range(0, len(A), tm):
        for j in range(0, B.shape[1], tn):
            block = C[i : i + tm, j : j + tn]
            c = pad.alloc("C", block.shape, np.float32)
            for s in range(0, len(B), tk):
                c += pad.load("A", A[i : i + tm, s : s + tk], slots=2) @ pad.load("B", B[s : s + tk, j : j + tn], slots=2)
                pad.free("A")
                pad.free("B")
            pad.store("C", block)
            pad.free("C")
    return C
""", "slots=2 only reserves room"),
    Wrong("C doubled", "2.5", 'c = pad.alloc("C", block.shape, np.float32)',
          'c = pad.alloc("C", block.shape, np.float32, slots=2)', "are free"),
    Wrong("each tile loaded twice", "2.5", "present = following",
          "present = following and (pad.free(f'A{(step + 1) % 2}'), pad.free(f'B{(step + 1) % 2}'), "
          "load(step + 1, i, j))[2]", "reading A moves"),
    Wrong("the next tile is computed", "2.5", "a, b = present", "a, b = following or present", "compare one tile of C"),
    # 2.6
    Wrong("halo forgotten", "2.6", "", """\
def tiled_conv(x, w, rows, pad):
    (filters, _, R, S), height, width = w.shape, x.shape[1], x.shape[2]
    P, Q = height - R + 1, width - S + 1
    y = np.zeros((filters, P, Q), np.float32)
    weights = pad.load("w", w)
    for p in range(0, P, rows):
        block = y[:, p : p + rows]
        image = pad.load("x", x[:, p : p + rows])
        sums = pad.alloc("y", block.shape, np.float32)
        for r in range(R):
            for s in range(S):
                seen = image[:, r : r + block.shape[1], s : s + Q]
                sums[:, : seen.shape[1]] += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)
        pad.store("y", block)
        pad.free("x")
        pad.free("y")
    return y
""", "which rows of x do their taps see"),
    Wrong("rows without their halo left out", "2.6", "        pad.store", "        sums[:, max(block.shape[1] - R + 1, 0) :] = 0\n"
          "        pad.store", "which rows of x do their taps see"),
    Wrong("R instead of R − 1", "2.6", "block.shape[1] + R - 1]", "block.shape[1] + R]", "are free|larger than a tile"),
    Wrong("a halo above, too", "2.6", 'image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])',
          'pad.load("x", x[:, max(p - 1, 0) : p])\n        pad.free("x")\n'
          '        image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])', "which is the last row of x"),
    Wrong("last block at full size", "2.6", "        pad.store(\"y\", block)",
          "        pad.free('x')\n        image = pad.load('x', x[:, p - rows if p + rows > P else p :][:, : rows + R - 1])\n"
          "        pad.store(\"y\", block)", "The last block may be shorter"),
    Wrong("weights for each block", "2.6", "        sums = pad", "        pad.free(\"w\")\n        weights = pad.load(\"w\", w)\n"
          "        sums = pad", "do the weights change"),
    Wrong("kernel turned round", "2.6", "weights[:, :, r, s]", "weights[:, :, R - 1 - r, S - 1 - s]", "turned round"),
    Wrong("last block lost", "2.6", "range(0, P, rows)", "range(0, P // rows * rows, rows)", "rounded up"),
    Wrong("one channel", "2.6", "weights[:, :, r, s], seen", "weights[:, :1, r, s], seen[:1]", "all channels add up"),
    Wrong("stored at each tap", "2.6", "weights[:, :, r, s], seen)",
          "weights[:, :, r, s], seen)\n                pad.store(\"y\", block)", "complete when all its taps"),
    Wrong("the specification on DRAM", "2.6", "(filters, _, R, S)", "return convolution(x, w)\n    (filters, _, R, S)",
          "nothing went through the pad"),
    Wrong("whole image on chip", "2.6", 'pad.load("x", x[:, p : p + block.shape[1] + R - 1])', 'pad.load("x", x)[:, p:]',
          "are free|larger than a tile"),
    # 2.7
    Wrong("the square", "2.7", "return \"mnk\", (tm, tn, 1)",
          "T = int((elements / 3) ** 0.5)\n    return \"mnk\", (T, T, T)", "decide how often A and B are read"),
    Wrong("square with k-step 1", "2.7", "return \"mnk\", (tm, tn, 1)",
          "T = int((elements + 1) ** 0.5) - 1\n    return \"mnk\", (T, T, 1)", "need not be equal"),
    Wrong("half of SRAM unused", "2.7", "elements = sram_bytes // itemsize", "elements = sram_bytes // itemsize // 2",
          "need not be equal"),
    Wrong("k outermost", "2.7", 'return "mnk"', 'return "kmn"', "which loop must be innermost"),
    Wrong("deep steps of k", "2.7", "return \"mnk\", (tm, tn, 1)",
          "T = int((elements + 64) ** 0.5) - 8\n    return \"mnk\", (T, T, 8)", "what does TK buy"),
    Wrong("bytes for elements", "2.7", "elements = sram_bytes // itemsize", "elements = sram_bytes", "are these elements"),
    Wrong("C forgotten", "2.7", "(tm, tn, 1)", "(m, n, 1)", "on chip together"),
    Wrong("tile and order swapped", "2.7", "return \"mnk\", (tm, tn, 1)", "return (tm, tn, 1), \"mnk\"", "a word of three letters"),
    Wrong("asks the judge", "2.7", "elements = ",
          "from labkit.search import best_tile\n    n_ = best_tile(matmul(m, n, k), sram_bytes).nest\n"
          "    return ''.join(n_.order), n_.tile\n    elements = ", "that is what you are to write here"),
    Wrong("by the specification", "2.2", "", """\
def working_set(tile, itemsize, double):
    return most_on_chip(tile, double) // 4 * itemsize
""",
          "what you are to write here"),
]  # fmt: skip

RIGHT = [
    Right("square root", "2.1", "", "from math import isqrt\n\n\ndef largest_tile(sram_kib, itemsize):\n"
          "    return isqrt(sram_kib * 1024 // (3 * itemsize))"),
    Right("recursion", "2.1", "", """\
def largest_tile(sram_kib, itemsize, low=0, high=1 << 20):
    if high - low == 1:
        return low
    middle = (low + high) // 2
    if 3 * middle**2 * itemsize <= sram_kib * 1024:
        return largest_tile(sram_kib, itemsize, middle, high)
    return largest_tile(sram_kib, itemsize, low, middle)
"""),
    Right("NumPy, and a NumPy integer", "2.1", "", "def largest_tile(sram_kib, itemsize):\n"
          "    return np.floor(np.sqrt(sram_kib * 1024 / (3 * itemsize))).astype(np.int64)"),
    Right("by the specification", "2.1", "", "def largest_tile(sram_kib, itemsize):\n    T = 1\n"
          "    while fits(T + 1, sram_kib, itemsize):\n        T += 1\n    return T"),
    Right("prints and warns", "2.1", "return T", "import warnings\n    warnings.warn('look')\n    print(T)\n    return T"),
    Right("a sum over a table", "2.2", "", "def working_set(tile, itemsize, double):\n"
          "    area = {'A': tile[0] * tile[2], 'B': tile[2] * tile[1], 'C': tile[0] * tile[1]}\n"
          "    return sum(area[x] * itemsize * (2 if double and x != 'C' else 1) for x in 'ABC')"),
    Right("NumPy product", "2.2", "", "def working_set(tile, itemsize, double):\n    t = np.array(tile)\n"
          "    sizes = np.prod(t) // t[[1, 0, 2]]\n    return np.int32(np.dot(sizes, [1 + double, 1 + double, 1]) * itemsize)"),
    Right("counted step by step", "2.3", "", "def intensity(m, n, k, tile, itemsize):\n"
          "    return 2 * m * n * k / (bytes_moved(m, n, k, tile, itemsize) + m * n * itemsize)"),
    Right("NumPy's float32", "2.3", "return 2", "from math import ceil\n    return np.float32(2 * m * n * k) / np.float32((m * k * "
          "ceil(n / tn) + k * n * ceil(m / tm) + m * n) * itemsize)\n    return 2"),
    Right("a fraction", "2.3", "return 2 * m * n * k / ((", "from fractions import Fraction\n    return Fraction(2 * m * n * k) / (("),
    Right("n before m", "2.4", "    for i in range(0, m, tm):\n        for j in range(0, n, tn):",
          "    for j in range(0, n, tn):\n        for i in range(0, m, tm):"),
    Right("k backwards", "2.4", "range(0, k, tk)", "reversed(range(0, k, tk))"),
    Right("B first", "2.4", '                a = pad.load("A", A[i : i + tm, s : s + tk])\n'
          '                b = pad.load("B", B[s : s + tk, j : j + tn])\n',
          '                b = pad.load("B", B[s : s + tk, j : j + tn])\n'
          '                a = pad.load("A", A[i : i + tm, s : s + tk])\n'),
    Right("lists at the end", "2.4", "    return C", "    return C.tolist()"),
    Right("float64 at the end", "2.4", "    return C", "    return C.astype(np.float64)"),
    Right("copies of slices, other names", "2.4", 'pad.load("A", A[i : i + tm, s : s + tk])\n',
          'pad.load("A", A[i : i + tm, s : s + tk].copy(), tensor="left")\n'),
    Right("element by element", "2.4", "c += a @ b", "for x, y, z in np.ndindex(*a.shape, b.shape[1]):\n"
          "                    c[x, z] += a[x, y] * b[y, z]"),
    Right("in a kernel", "2.4", "", "_inner = tiled_matmul\n\n\ndef tiled_matmul(A, B, tile, pad):\n"
          "    with pad.kernel('mine'):\n        return _inner(A, B, tile, pad)"),
    Right("recursion over tiles", "2.4", "", """\
def tiled_matmul(A, B, tile, pad, C=None):
    C = np.zeros((len(A), B.shape[1]), np.float32) if C is None else C
    tm, tn, tk = tile
    if len(A) > tm:
        tiled_matmul(A[:tm], B, tile, pad, C[:tm])
        tiled_matmul(A[tm:], B, tile, pad, C[tm:])
    elif B.shape[1] > tn:
        tiled_matmul(A, B[:, :tn], tile, pad, C[:, :tn])
        tiled_matmul(A, B[:, tn:], tile, pad, C[:, tn:])
    else:
        c = pad.alloc("C", C.shape, "float32")
        for s in range(0, len(B), tk):
            c += pad.load("A", A[:, s : s + tk]) @ pad.load("B", B[s : s + tk])
            pad.free("A"), pad.free("B")
        pad.store("C", C)
        pad.free("C")
    return C
"""),
    Right("transposed loads", "2.4", 'b = pad.load("B", B[s : s + tk, j : j + tn])\n',
          'b = pad.load("B", B.T[j : j + tn, s : s + tk]).T\n'),
    Right("the next tile across tiles of C", "2.5", "", """\
def double_buffered(A, B, tile, pad):
    tm, tn, tk = tile
    m, n, k = A.shape[0], B.shape[1], A.shape[1]
    C = np.zeros((m, n), np.float32)
    steps = [(i, j, s) for i in range(0, m, tm) for j in range(0, n, tn) for s in range(0, k, tk)]

    def load(number):
        i, j, s = steps[number]
        pad.load(f"A{number % 2}", A[i : i + tm, s : s + tk])
        pad.load(f"B{number % 2}", B[s : s + tk, j : j + tn])

    load(0)
    for number, (i, j, s) in enumerate(steps):
        if number + 1 < len(steps):
            load(number + 1)
        block = C[i : i + tm, j : j + tn]
        c = pad.alloc("C", block.shape, np.float32) if s == 0 else pad["C"]
        c += pad[f"A{number % 2}"] @ pad[f"B{number % 2}"]
        pad.free(f"A{number % 2}")
        pad.free(f"B{number % 2}")
        if s + tk >= k:
            pad.store("C", block)
            pad.free("C")
    return C
"""),
    Right("n before m", "2.5", "    for i in range(0, m, tm):\n        for j in range(0, n, tn):",
          "    for j in range(0, n, tn):\n        for i in range(0, m, tm):"),
    Right("windows", "2.6", "for r in range(R):\n            for s in range(S):\n"
          "                seen = image[:, r : r + block.shape[1], s : s + Q]\n"
          '                sums += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)',
          'seen = np.lib.stride_tricks.sliding_window_view(image, (R, S), axis=(1, 2))\n'
          '        sums += np.einsum("cpqrs,fcrs->fpq", seen, weights)'),
    Right("blocks from below", "2.6", "range(0, P, rows)", "reversed(range(0, P, rows))"),
    Right("lists", "2.6", "    return y", "    return y.tolist()"),
    Right("plain loops", "2.6", 'sums += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)',
          "for f, c in np.ndindex(*w.shape[:2]):\n                    sums[f] += weights[f, c, r, s] * seen[c]"),
    Right("a list and a NumPy integer", "2.7", "return \"mnk\", (tm, tn, 1)", "return [\"mnk\", [np.int64(tm), tn, 1]]"),
    Right("n outermost", "2.7", 'return "mnk"', 'return "nmk"'),
    Right("search on LoopNest", "2.7", "_, tm, tn = min(found)",
          "_, tm, tn = min((nbytes_of('mnk', (t, u, 1), m, n, k), t, u) for _, t, u in sorted(found)[:5])"),
]  # fmt: skip
