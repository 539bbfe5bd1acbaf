"""Exercise 03: misconceptions about fusion, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

_ROWS = """\
            image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])
            sums = pad.alloc("y", block.shape, np.float32)
            for r in range(R):
                for s in range(S):
                    seen = image[:, r : r + block.shape[1], s : s + Q]
                    sums += np.einsum("""

WRONG = [
    # 3.1
    Wrong("written only", "3.1", "2 * channels", "channels", "who moves it again"),
    Wrong("the last result counted", "3.1", "return kernels, nbytes", "return kernels, nbytes + channels * height * width * itemsize",
          "no kernel of the chain reads that"),
    Wrong("a tensor for each kernel", "3.1", "range(kernels - 1)", "range(kernels)", "how many lie between"),
    Wrong("gaps for launches", "3.1", "return kernels,", "return kernels - 1,", "how many kernels are started"),
    Wrong("bytes for launches", "3.1", "return kernels,", "return nbytes,", "bytes for launches"),
    Wrong("transfers for launches", "3.1", "return kernels,", "return 2 * (kernels - 1),", "launches are a counter of their own"),
    Wrong("launches of the fused kernel", "3.1", "return kernels,", "return 1,", "this is unfused"),
    Wrong("elements for bytes", "3.1", " * itemsize", "", "bytes are asked"),
    Wrong("KiB", "3.1", "return kernels, nbytes", "return kernels, nbytes // 1024", "not in KiB"),
    Wrong("the other way round", "3.1", "return kernels, nbytes", "return nbytes, kernels", "launches first"),
    Wrong("nothing moves", "3.1", "return kernels, nbytes", "return kernels, 0", "that is the fused chain"),
    Wrong("one number", "3.1", "return kernels, nbytes", "return nbytes", "expected a tuple"),
    # 3.2
    Wrong("whole arrays", "3.2", "tm, tn, tk = tile", "return np.maximum(A @ B + bias, 0)", "nothing went through the pad"),
    Wrong("whole arrays, and a formula in the ledger", "3.2", "tm, tn, tk = tile",
          'pad.ledger.record("f", "A", "read", A.nbytes)\n    return np.maximum(A @ B + bias, 0)', "no place for a formula"),
    Wrong("bias in DRAM", "3.2", 'pad.load("bias", bias[j : j + tn])', 'bias[j : j + tn]\n                pad.load("bias", bias[j : j + tn])',
          "still lie in DRAM"),
    Wrong("ReLU at each step", "3.2", "c += a @ b\n", "c += a @ b\n                    np.maximum(c, 0, out=c)\n",
          "before the reduction was complete"),
    Wrong("ReLU of each product", "3.2", "c += a @ b\n", "c += np.maximum(a @ b, 0)\n", "before the reduction was complete"),
    Wrong("ReLU before the bias", "3.2", '                c += pad.load("bias", bias[j : j + tn])\n                np.maximum(c, 0, out=c)\n',
          '                np.maximum(c, 0, out=c)\n                c += pad.load("bias", bias[j : j + tn])\n', "before the bias"),
    Wrong("bias at each step", "3.2", "c += a @ b\n", 'c += a @ b\n                    if s:\n                        c += pad.load("bias", bias[j : j + tn])\n'
          '                        pad.free("bias")\n', "once for each step of k"),
    Wrong("bias loaded at each step", "3.2", "c += a @ b\n", 'c += a @ b\n                    pad.load("bias", bias[j : j + tn])\n                    pad.free("bias")\n',
          "its piece of the bias"),
    Wrong("ReLU forgotten", "3.2", "                np.maximum(c, 0, out=c)\n", "", "ReLU is missing"),
    Wrong("ReLU into another array", "3.2", "np.maximum(c, 0, out=c)", "c = np.maximum(c, 0)", "ReLU is missing|or a new array"),
    Wrong("bias forgotten", "3.2", 'c += pad.load("bias", bias[j : j + tn])', 'pad.load("bias", bias[j : j + tn])', "the bias is missing"),
    Wrong("whole bias on chip", "3.2", 'pad.load("bias", bias[j : j + tn])', 'pad.load("bias", bias)[j : j + tn]', "its piece of the bias"),
    Wrong("intermediate in DRAM", "3.2", "                np.maximum(c, 0, out=c)\n",
          '                pad.store("C", block)\n                pad.free("C")\n                c = pad.load("C", block)\n                np.maximum(c, 0, out=c)\n',
          "stays on chip"),
    Wrong("stored at each step", "3.2", "c += a @ b\n", 'c += a @ b\n                    pad.store("C", block)\n', "the stores move|stays on chip"),
    Wrong("sums read first", "3.2", 'pad.alloc("C", block.shape, np.float32)', 'pad.load("C", block)', "they start at zero on chip"),
    Wrong("three kernels", "3.2", "", """\
def fused_matmul(A, B, bias, tile, pad):
    tm, tn, tk = tile
    C = np.zeros((len(A), B.shape[1]), np.float32)
    blocks = [C[i : i + tm, j : j + tn] for i in range(0, len(A), tm) for j in range(0, B.shape[1], tn)]
    columns = [slice(j, j + tn) for i in range(0, len(A), tm) for j in range(0, B.shape[1], tn)]
    rows = [slice(i, i + tm) for i in range(0, len(A), tm) for j in range(0, B.shape[1], tn)]
    with pad.kernel("matmul"):
        for block, i, j in zip(blocks, rows, columns):
            c = pad.alloc("C", block.shape, np.float32)
            for s in range(0, len(B), tk):
                c += pad.load("A", A[i, s : s + tk]) @ pad.load("B", B[s : s + tk, j])
                pad.free("A"), pad.free("B")
            pad.store("C", block)
            pad.free("C")
    with pad.kernel("bias"):
        for block, j in zip(blocks, columns):
            c = pad.load("C", block)
            c += pad.load("bias", bias[j])
            pad.store("C", block)
            pad.free("C"), pad.free("bias")
    with pad.kernel("relu"):
        for block in blocks:
            c = pad.load("C", block)
            np.maximum(c, 0, out=c)
            pad.store("C", block)
            pad.free("C")
    return C
""", "the stores move|stays on chip"),
    Wrong("a launch for each tile", "3.2", "                c = pad.alloc", "                with pad.kernel('tile'):\n                    pass\n                c = pad.alloc",
          "launches|counter of their own"),
    Wrong("no launch", "3.2", 'with pad.kernel("matmul, bias, relu"):', "if True:", "0 launches"),
    Wrong("labkit's own kernel", "3.2", "tm, tn, tk = tile", "from labkit.kernels.matmul import tiled_matmul as own\n    return own(A, B, tile, pad)",
          "that is what you are to write here"),
    # 3.3
    Wrong("the specification on DRAM", "3.3", "(filters, _, R, S)", "return globals()['block'](x, w, scale, shift, residual)\n    (filters, _, R, S)", "nothing went through the pad"),
    Wrong("ReLU at each tap", "3.3", "weights[:, :, r, s], seen)", "weights[:, :, r, s], seen)\n                    np.maximum(sums, 0, out=sums)",
          "before the reduction was complete"),
    Wrong("ReLU before scale and shift", "3.3", "            sums *= factor", "            np.maximum(sums, 0, out=sums)\n            sums *= factor",
          "before scale and shift as well"),
    Wrong("ReLU before the residual", "3.3", '            sums += pad.load("residual", residual[:, p : p + rows])\n            np.maximum(sums, 0, out=sums)\n',
          '            np.maximum(sums, 0, out=sums)\n            sums += pad.load("residual", residual[:, p : p + rows])\n', "before the residual was added"),
    Wrong("BN applied twice", "3.3", "            sums += summand\n", "            sums += summand\n            sums *= factor\n            sums += summand\n", "applied twice"),
    Wrong("BN behind the residual", "3.3", "            sums *= factor\n            sums += summand\n"
          '            sums += pad.load("residual", residual[:, p : p + rows])\n',
          '            sums += pad.load("residual", residual[:, p : p + rows])\n            sums *= factor\n            sums += summand\n', "the residual went through"),
    Wrong("shift at each tap", "3.3", "            sums *= factor\n            sums += summand\n", "            sums *= factor\n            sums += R * S * summand\n",
          "once for each tap"),
    Wrong("shift before scale", "3.3", "            sums *= factor\n            sums += summand\n", "            sums += summand\n            sums *= factor\n",
          "the shift came before the scale"),
    Wrong("residual forgotten", "3.3", "sums += pad.load(\"residual\"", "pad.load(\"residual\"", "the residual is missing"),
    Wrong("BN forgotten", "3.3", "            sums *= factor\n            sums += summand\n", "", "scale and shift are missing"),
    Wrong("residual with a halo", "3.3", "residual[:, p : p + rows])", "residual[:, p : p + rows + R - 1])[:, : block.shape[1]]", "are free|larger than a tile"),
    Wrong("residual in DRAM", "3.3", 'pad.load("residual", residual[:, p : p + rows])', 'pad.load("residual", residual[:, p : p + rows]) * 0 + residual[:, p : p + rows]',
          "still lie in DRAM"),
    Wrong("residual read twice", "3.3", "            np.maximum(sums, 0, out=sums)\n",
          '            np.maximum(sums, 0, out=sums)\n            pad.free("residual")\n            pad.load("residual", residual[:, p : p + rows])\n', "rows of the residual at its own place"),
    Wrong("weights for each block", "3.3", "            sums = pad", '            pad.free("w")\n            weights = pad.load("w", w)\n            sums = pad',
          "reading w moves|from one block to the next"),
    Wrong("shift for each block", "3.3", "            sums = pad", '            pad.free("shift")\n            summand = pad.load("shift", shift)[:, None, None]\n            sums = pad',
          "reading shift moves|from one block to the next"),
    Wrong("halo forgotten", "3.3", _ROWS, _ROWS.replace("block.shape[1] + R - 1]", "rows]").replace("sums +=", "sums[:, : seen.shape[1]] +="),
          "which rows of x do their taps see"),
    Wrong("rows without their halo left out", "3.3", "            pad.store", "            sums[:, max(block.shape[1] - R + 1, 0) :] = 0\n            pad.store",
          "compare one output row"),
    Wrong("a halo above, too", "3.3", 'image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])',
          'pad.load("x", x[:, max(p - 1, 0) : p])\n            pad.free("x")\n            image = pad.load("x", x[:, p : p + block.shape[1] + R - 1])', "which is the last row of x"),
    Wrong("last block lost", "3.3", "range(0, P, rows)", "range(0, P // rows * rows, rows)", "rounded up"),
    Wrong("intermediate in DRAM", "3.3", "            sums *= factor\n",
          '            pad.store("y", block)\n            pad.free("y")\n            sums = pad.load("y", block)\n            sums *= factor\n', "stays on chip"),
    Wrong("a launch for each block", "3.3", "            block = y", "            with pad.kernel('block'):\n                pass\n            block = y",
          "launches|counter of their own"),
    Wrong("no launch", "3.3", 'with pad.kernel("conv, bn, add, relu"):', "if True:", "0 launches"),
    # 3.4
    Wrong("residual forgotten", "3.4", " + residuals * block", "", "the residuals are forgotten"),
    Wrong("vectors forgotten", "3.4", " + vectors", "", "scale and shift are forgotten"),
    Wrong("weights forgotten", "3.4", "image + weights", "image", "every block needs all of them"),
    Wrong("sums forgotten", "3.4", " + block + residuals", " + residuals", "where are the products added up"),
    Wrong("halo of rows forgotten", "3.4", "(rows + taps - 1)", "rows", "as many rows here as y"),
    Wrong("halo of columns forgotten", "3.4", "(width + taps - 1)", "width", "how many columns"),
    Wrong("no halo", "3.4", "(rows + taps - 1) * (width + taps - 1)", "rows * width", "as large here as y"),
    Wrong("halo above and below", "3.4", "(rows + taps - 1)", "(rows + 2 * (taps - 1))", "too much halo"),
    Wrong("a buffer for each operator", "3.4", "+ block +", "+ 3 * block +", "y three times"),
    Wrong("vectors as blocks", "3.4", "vectors = 2 * f", "vectors = 2 * block", "one number for each filter"),
    Wrong("one vector", "3.4", "vectors = 2 * f", "vectors = f", "a scale and a shift"),
    Wrong("elements for bytes", "3.4", " * itemsize", "", "measured in bytes"),
    # 3.5
    Wrong("weights forgotten", "3.5", "if value.name not in inside}", "if value.name not in inside and value.name not in graph.constants}", "the weights are missing"),
    Wrong("each read counted", "3.5", "reads = {value.name: value for", "reads = {(value.name, node.output.name): value for", "one kernel loads it once"),
    Wrong("a value read outside forgotten as output", "3.5", "if outside or name in graph.output_names:", "if all(u in outside for u in graph.users.get(name, ())):",
          "has to be written all the same"),
    Wrong("outputs of the graph forgotten", "3.5", "if outside or name in graph.output_names:", "if outside:", "who reads them then"),
    Wrong("everything written", "3.5", "if outside or name in graph.output_names:", "if True:", "does anybody outside ever see"),
    Wrong("each node alone", "3.5", "inside = set(group)", "return sum(alone(graph, name) for name in group)\n    inside = set(group)", "hand to each other on chip"),
    Wrong("elements for bytes", "3.5", "return nbytes", "return nbytes // 4", "bytes are asked"),
    Wrong("read only", "3.5", "    for node in nodes:\n        name", "    for node in ():\n        name", "what has to be written"),
    Wrong("written only", "3.5", "nbytes = sum(value.type.nbytes for value in reads.values())", "nbytes = 0", "what does it read"),
    Wrong("labkit's own count", "3.5", "inside = set(group)", "from labkit import Hardware, cost\n    return cost(graph, Hardware.preset('dsp')).dram_bytes",
          "that is what you are to write here"),
    # 3.6
    Wrong("two anchors", "3.6", "len(anchors) > 1", "False", "gave True|how many anchors"),
    Wrong("anchor behind its group", "3.6", "value.name in inside for node in anchors", "False for node in anchors", "gave True|what does its anchor read"),
    Wrong("any operator", "3.6", "node.op not in ANCHORS + ELEMENTWISE for node", "False for node", "gave True|class of each operator"),
    Wrong("shapes not compared", "3.6", "len({node.output.shape for node in nodes}) > 1", "False", "gave True|compare the shapes"),
    Wrong("two pieces", "3.6", "if reached != inside:", "if False:", "gave True|two separate pieces"),
    Wrong("not convex", "3.6", "if read & behind:", "if False:", "gave True|follow the paths"),
    Wrong("direct detours only", "3.6", "elif read & (inside | behind):", "elif read & inside:", "gave True|follow the paths"),
    Wrong("read outside, so refused", "3.6", "    behind = set()\n",
          "    if any(len(graph.users.get(name, ())) > 1 or name in graph.output_names and name in graph.users for name in group):\n"
          "        return False\n    behind = set()\n", "gave False|several outputs"),
    Wrong("no anchor, no kernel", "3.6", "len(anchors) > 1", "len(anchors) != 1", "gave False|need no anchor"),
    Wrong("a node alone refused", "3.6", "if len(group) == 1:\n        return True", "if len(group) == 1:\n        return False", "gave False|always a kernel"),
    Wrong("always", "3.6", "inside = set(group)", "return True", "gave True"),
    Wrong("text for a truth", "3.6", "if len(group) == 1:\n        return True", "if len(group):\n        return 'yes'", "expected True or False"),
    Wrong("labkit's own groups", "3.6", "inside = set(group)",
          "from labkit.passes.groups import groups\n    return any({n.output.name for n in g} >= set(group) for g in groups(graph))", "that is what you are to write here"),
    # 3.7
    Wrong("MAC for FLOP", "3.7", "mid * 2 * c", "mid * c", "one multiply-accumulate"),
    Wrong("intermediate once", "3.7", "2 * between - again", "between - again", "it is written, and then"),
    Wrong("halo of x forgotten", "3.7", "2 * between - again", "2 * between", "halo of x is forgotten"),
    Wrong("halo of one convolution", "3.7", "block + 2 * halo\n    extra", "block + halo\n    loaded += halo\n    extra", "lies behind two of them"),
    Wrong("first block repeats", "3.7", "extra_rows = computed - (height + halo)", "extra_rows = computed - height\n    loaded += 2 * halo", "who computed them before"),
    Wrong("last block forgotten", "3.7", "extra_rows = computed - (height + halo)",
          "extra_rows = (height // rows - 1) * halo\n    loaded = height + 2 * halo + 2 * extra_rows", "last, smaller block"),
    Wrong("taps for halo", "3.7", "extra_rows = computed - (height + halo)",
          "extra_rows = (computed - height) // halo * taps - taps\n    loaded = height + 2 * halo + 2 * extra_rows", "as many rows as there are taps"),
    Wrong("width of the result", "3.7", "extra_rows * (width + halo)", "extra_rows * width", "narrows them"),
    Wrong("taps forgotten", "3.7", " * taps * taps", "", "the taps are forgotten"),
    Wrong("nothing computed twice", "3.7", "return flops,", "return 0,", "which rows do two blocks need"),
    Wrong("elements for bytes", "3.7", " * itemsize", "", "in elements"),
    Wrong("the other way round", "3.7", "return flops, (2 * between - again) * itemsize", "return (2 * between - again) * itemsize, flops", "extra FLOP first"),
    Wrong("labkit's own kernel", "3.7", "    halo = taps - 1\n",
          "    from labkit.kernels.depth_first import DepthFirst\n    from labkit.problems import ConvShape\n    h = 2 * taps - 2\n"
          "    first = ConvShape(1, c, height + h, width + h, mid, (taps, taps))\n"
          "    second = ConvShape(1, mid, height + h // 2, width + h // 2, 1, (taps, taps))\n"
          "    pair = DepthFirst(first, second, (rows, width))\n    return pair.extra_flops, pair.saved_bytes * itemsize // 4\n    halo = taps - 1\n",
          "that is what you are to write here"),
    # 3.8
    Wrong("each node alone", "3.8", "names = list(graph.producers)", "return [[name] for name in graph.producers]", "each node alone"),
    Wrong("as much as fits", "3.8", "    best = [(0, [])]\n", """\
    split = []
    while names:
        size = max(n for n in range(1, len(names) + 1) if all(graph.producers[x].op != "Conv" for x in names[1:n])
                   and room(graph, names[:n]) <= sram_bytes)
        split.append(names[:size])
        names = names[size:]
    return split
""" + "    best = [(0, [])]\n", "as much as fits"),
    Wrong("too large for the SRAM", "3.8", " and room(graph, group) <= sram_bytes", "", "its room is"),
    Wrong("two anchors in a kernel", "3.8", '"Conv" not in follows and ', "", "anchor"),
    Wrong("fewest kernels for fewest bytes", "3.8", "before + moved(group)", "before + 1", "as much as fits"),
    Wrong("written values forgotten", "3.8", "                values.add(node.output)\n", "                pass\n", "can do"),
    Wrong("a node left out", "3.8", "return best[-1][1]", "return best[-2][1]", "is in 0 kernels"),
    Wrong("a node twice", "3.8", "return best[-1][1]", "return [*best[-1][1], names[-1:]]", "is in 2 kernels"),
    Wrong("nodes for names", "3.8", "return best[-1][1]", "return [[graph.producers[name] for name in group] for group in best[-1][1]]", "the name of no node"),
    Wrong("labkit's own pass", "3.8", "names = list(graph.producers)",
          "from dataclasses import replace\n    from labkit import Hardware\n    from labkit.passes.fuse import candidates\n"
          "    machine = replace(Hardware.preset('dsp'), sram_bytes=sram_bytes)\n"
          "    return [[n.output.name for n in part] for c in candidates(graph, machine) for part in c.parts]", "that is what you are to write here"),
    Wrong("by the specification", "3.4", "", """\
def fused_working_set(c, f, rows, width, taps, residuals, itemsize):
    return most_on_chip(c, f, rows, width, taps, residuals) // 4 * itemsize
""",
          "what you are to write here"),
]  # fmt: skip

RIGHT = [
    Right("in one line", "3.1", "", "def unfused(shape, itemsize, kernels):\n    return [kernels, 2 * (kernels - 1) * int(np.prod(shape)) * itemsize]"),
    Right("an array", "3.1", "return kernels, nbytes", "return np.array([kernels, nbytes])"),
    Right("prints and warns", "3.1", "return kernels, nbytes", "import warnings\n    warnings.warn('look')\n    print(nbytes)\n    return kernels, nbytes"),
    Right("recursion", "3.1", "", "def unfused(shape, itemsize, kernels):\n    if kernels == 1:\n        return 1, 0\n"
          "    launches, nbytes = unfused(shape, itemsize, kernels - 1)\n    return launches + 1, nbytes + 2 * np.prod(shape) * itemsize"),
    Right("n before m", "3.2", "        for i in range(0, m, tm):\n            for j in range(0, n, tn):", "        for j in range(0, n, tn):\n            for i in range(0, m, tm):"),
    Right("bias first", "3.2", "", """\
def fused_matmul(A, B, bias, tile, pad):
    tm, tn, tk = tile
    C = np.zeros((len(A), B.shape[1]), np.float32)
    with pad.kernel("mine"):
        for j in range(0, B.shape[1], tn):
            summand = pad.load("bias", bias[j : j + tn])
            for i in range(0, len(A), tm):
                block = C[i : i + tm, j : j + tn]
                c = pad.alloc("C", block.shape, "float32")
                c[:] = summand
                for s in reversed(range(0, len(B), tk)):
                    b = pad.load("B", B[s : s + tk, j : j + tn])
                    c += pad.load("A", A[i : i + tm, s : s + tk]) @ b
                    pad.free("A"), pad.free("B")
                c[c < 0] = 0
                pad.store("C", block)
                pad.free("C")
            pad.free("bias")
    return C
"""),
    Right("lists at the end", "3.2", "    return C", "    return C.tolist()"),
    Right("float64 at the end", "3.2", "    return C", "    return C.astype(np.float64)"),
    Right("np.clip", "3.2", "np.maximum(c, 0, out=c)", "c[:] = np.clip(c, 0, None)"),
    Right("windows", "3.3", "for r in range(R):\n                for s in range(S):\n"
          "                    seen = image[:, r : r + block.shape[1], s : s + Q]\n"
          '                    sums += np.einsum("fc,cpq->fpq", weights[:, :, r, s], seen)',
          "seen = np.lib.stride_tricks.sliding_window_view(image, (R, S), axis=(1, 2))\n"
          '            sums += np.einsum("cpqrs,fcrs->fpq", seen, weights)'),
    Right("scale in the weights", "3.3", "        for p in range(0, P, rows):", "        weights *= factor[..., None]\n        factor = 1\n        for p in range(0, P, rows):"),
    Right("blocks from below", "3.3", "range(0, P, rows)", "reversed(range(0, P, rows))"),
    Right("lists", "3.3", "    return y", "    return y.tolist()"),
    Right("a new array into the buffer", "3.3", "            sums += summand\n", "            sums[...] = sums + summand\n"),
    Right("a table", "3.4", "", "def fused_working_set(c, f, rows, width, taps, residuals, itemsize):\n"
          "    shapes = [(c, rows + taps - 1, width + taps - 1), (f, c, taps, taps), (1 + residuals, f, rows, width), (2, f)]\n"
          "    return np.int64(sum(itemsize * np.prod(shape) for shape in shapes))"),
    Right("as the pad says", "3.4", "", "def fused_working_set(c, f, rows, width, taps, residuals, itemsize):\n    pad = Scratchpad('1GiB')\n    t = f'f{itemsize}'\n"
          "    pad.alloc('x', (c, rows + taps - 1, width + taps - 1), t)\n    pad.alloc('w', (f, c, taps, taps), t)\n"
          "    for i in range(1 + residuals):\n        pad.alloc(f'y{i}', (f, rows, width), t)\n    pad.alloc('v', (2, f), t)\n    return pad.used_bytes"),
    Right("sets of values", "3.5", "", "def kernel_bytes(graph, group):\n    nodes = [n for n in graph.nodes if n.output.name in group]\n    made = {n.output for n in nodes}\n"
          "    read = {v for n in nodes for v in n.uses} - made\n    outer = {v.name for n in graph.nodes if n not in nodes for v in n.uses} | set(graph.output_names)\n"
          "    return sum(v.type.nbytes for v in read | {v for v in made if v.name in outer})"),
    Right("from each node alone", "3.5", "", "def kernel_bytes(graph, group):\n    total = sum(alone(graph, name) for name in group)\n"
          "    names = {v.name: v for name in group for v in graph.producers[name].uses}\n"
          "    for name, value in names.items():\n        inner = sum(name in {v.name for v in graph.producers[n].uses} for n in group)\n"
          "        total -= value.type.nbytes * (inner if name in group else inner - 1)\n"
          "    for name in group:\n        users = graph.users.get(name, ())\n"
          "        if users and name not in graph.output_names and all(u.output.name in group for u in users):\n"
          "            total -= graph.producers[name].output.type.nbytes\n    return total"),
    Right("depth-first walk, and NumPy's bool", "3.6", "", """\
def may_be_one_kernel(graph, group):
    if len(group) < 2:
        return np.bool_(True)
    producers = graph.producers
    ops = [producers[name].op for name in group]
    leads = all(v.name not in group for name in group if producers[name].op in ANCHORS for v in producers[name].uses)
    if sum(op in ANCHORS for op in ops) > 1 or not leads or set(ops) - {*ANCHORS, *ELEMENTWISE}:
        return np.bool_(False)
    if len({producers[name].output.shape for name in group}) != 1:
        return np.bool_(False)

    def near(name):
        return {v.name for v in producers[name].uses} | {u.output.name for u in graph.users.get(name, ())}

    def walk(name, seen):
        seen.add(name)
        for other in near(name) & set(group) - seen:
            if other not in seen:
                walk(other, seen)
        return seen

    def returns(name, outside):
        for user in graph.users.get(name, ()):
            inside = user.output.name in group
            if inside and outside or not inside and returns(user.output.name, True):
                return True
        return False

    return np.bool_(walk(group[0], set()) == set(group) and not any(returns(name, False) for name in group))
"""),
    Right("prints", "3.6", "inside = set(group)", "inside = set(group)\n    print(sorted(inside))"),
    Right("closed form", "3.7", "", "def depth_first(c, mid, height, width, taps, rows, itemsize):\n    from math import ceil\n    h = taps - 1\n    extra = (ceil(height / rows) - 1) * h\n"
          "    return [extra * (width + h) * mid * c * taps**2 * 2,\n            itemsize * 2 * (mid * (height + h) * (width + h) - extra * c * (width + 2 * h))]"),
    Right("every way to cut", "3.8", "    best = [(0, [])]\n", """\
    best = None
    for cuts in range(1 << len(names) - 1):
        split = [[names[0]]]
        for place, name in enumerate(names[1:]):
            if cuts >> place & 1:
                split.append([])
            split[-1].append(name)
        legal = all(graph.producers[n].op != "Conv" for g in split for n in g[1:])
        if legal and all(room(graph, g) <= sram_bytes for g in split):
            total = sum(map(moved, split))
            best = min(best, (total, split)) if best else (total, split)
    return best[1]
""" + "    best = [(0, [])]\n"),
    Right("tuples in another order", "3.8", "return best[-1][1]", "return tuple(tuple(reversed(group)) for group in reversed(best[-1][1]))"),
    Right("by the specification", "3.1", "", """\
def unfused(shape, itemsize, kernels):
    pad = run_chain(shape, itemsize, kernels)
    moved = pad.ledger.by("value")
    return pad.launches, sum(moved[f"tensor {number}"].nbytes for number in range(1, kernels))
"""),
    Right("by the specification", "3.7", "", """\
def depth_first(c, mid, height, width, taps, rows, itemsize):
    def seen(number):
        once = rows_seen(range(number), taps)
        return len(once), len(rows_seen(once, taps))
    blocks = [seen(min(rows, height - first)) for first in range(0, height, rows)]
    (middle, x), (columns, x_columns) = seen(height), seen(width)
    more, again = sum(one for one, _ in blocks) - middle, sum(two for _, two in blocks) - x
    return more * columns * mid * 2 * c * taps**2, (2 * mid * middle * columns - again * c * x_columns) * itemsize
"""),
]  # fmt: skip
