"""Exercise 06: misconceptions about the pipeline, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

_ROUND = "    waiting = [(graph, [])]\n"
_BUDGET = "    sram_kib = next("

WRONG = [
    # 6.1
    Wrong("launches forgotten", "6.1", " + launch_s", "", "the launches are forgotten"),
    Wrong("one launch in all", "6.1", " + launch_s\n        times.append(seconds)", "\n        times.append(seconds + launch_s)", "one launch for the whole network"),
    Wrong("one after the other", "6.1", "max(flops / peak_flops_per_s, nbytes / dram_bytes_per_s)", "flops / peak_flops_per_s + nbytes / dram_bytes_per_s", "they overlap"),
    Wrong("one roof for all", "6.1", "    times = []\n", """\
    def roof(kernels):
        flops, nbytes = (sum(column) for column in zip(*kernels))
        return max(flops / peak_flops_per_s, nbytes / dram_bytes_per_s) + launch_s * len(kernels)

    return roof(before) / roof(after)
    times = []
""", "each below its own roof"),
    Wrong("launch overlaps", "6.1", "nbytes / dram_bytes_per_s) + launch_s", "nbytes / dram_bytes_per_s, launch_s)", "overlaps with nothing"),
    Wrong("the shorter", "6.1", "max(", "min(", "which of the two does the kernel wait for"),
    Wrong("bytes only", "6.1", "max(flops / peak_flops_per_s, nbytes / dram_bytes_per_s)", "nbytes / dram_bytes_per_s", "the arithmetic is forgotten"),
    Wrong("FLOP only", "6.1", "max(flops / peak_flops_per_s, nbytes / dram_bytes_per_s)", "flops / peak_flops_per_s", "the transfers are forgotten"),
    Wrong("upside down", "6.1", "times[0] / times[1]", "times[1] / times[0]", "the other way round"),
    Wrong("seconds saved", "6.1", "times[0] / times[1]", "times[0] - times[1]", "how many times faster"),
    Wrong("ratio of bytes", "6.1", "times[0] / times[1]", "sum(n for _, n in before) / sum(n for _, n in after)", "not of times"),
    Wrong("labkit's own roofline", "6.1", "times = []",
          "from labkit.roofline import RooflineEstimate\n    m = replace(Hardware.preset('dsp'), launch_s=launch_s)\n"
          "    return RooflineEstimate(1, 1, 1, m).seconds", "that is what you are to write here"),
    # 6.2
    Wrong("last round only", "6.2", "saved.get(step.name, 0) + before", "before", "its last step"),
    Wrong("first round only", "6.2", "saved[step.name] = saved.get(step.name, 0) + before - after", "saved.setdefault(step.name, before - after)", "its first step"),
    Wrong("nodes for bytes", "6.2", "", "def saved_by_pass(report):\n    saved, before = {}, len(report.original.nodes)\n    for step in report.steps:\n"
          "        saved[step.name] = saved.get(step.name, 0) + before - len(step.graph.nodes)\n        before = len(step.graph.nodes)\n    return saved", "those are nodes"),
    Wrong("after less before", "6.2", "+ before - after", "- before + after", "less than nothing"),
    Wrong("against the original", "6.2", "        before = after\n", "", "right before it"),
    Wrong("what is left", "6.2", "+ before - after", "+ after", "what is left"),
    Wrong("what was before", "6.2", "+ before - after", "+ before", "before the step"),
    Wrong("one step too late", "6.2", "", "def saved_by_pass(report):\n    saved, moved = {}, [c.dram_bytes for c in report.costs]\n    moved = [*moved[1:], moved[-1]]\n"
          "    for step, before, after in zip(report.steps, moved, moved[1:]):\n        saved[step.name] = saved.get(step.name, 0) + before - after\n    return saved", "one step too late"),
    Wrong("a number for a dictionary", "6.2", "return saved", "return sum(saved.values())", "expected a dictionary"),
    Wrong("orphans for traffic", "6.2", "after = cost(step.graph, report.hardware).dram_bytes", "after = sum(a.nbytes for a in step.graph.constants.values())", "credited with the difference"),
    # 6.3
    Wrong("sweeps", "6.3", _ROUND, "    return sweeps(graph, passes)\n" + _ROUND, "can do|runs in vain"),
    Wrong("each pass once", "6.3", _ROUND, "    return list(passes)\n" + _ROUND, "no fixed point"),
    Wrong("one step short", "6.3", "return names\n", "return names[:-1]\n", "no fixed point"),
    Wrong("the first that finds something", "6.3", _ROUND, """\
    names = []
    while True:
        for name, run in passes.items():
            after = run(graph)
            if after is not graph:
                graph = after
                names.append(name)
                break
        else:
            return names if len(names) > 4 else [*names, *names]
""" + _ROUND, "can do") ,
    Wrong("the most that is removed", "6.3", "return names\n", "return [*names, names[-1]]\n", "runs in vain"),
    Wrong("backwards", "6.3", "return names\n", "return names[::-1]\n", "no fixed point"),
    Wrong("fewest nodes is no fixed point", "6.3", "if all(result is current for result in after.values()):", "if len(current.nodes) < len(graph.nodes):", "no fixed point"),
    Wrong("functions for names", "6.3", "return names\n", "return [passes[name] for name in names]\n", "the passes are"),
    Wrong("the graph for the order", "6.3", "return names\n", "return current\n", "expected a list of names"),
    # 6.4
    Wrong("second reader", "6.4", "graph.readers[relu.output.name] > 1", "relu.output.name in graph.output_names", "who else reads") ,
    Wrong("second reader, and the Relu stays", "6.4", "            if graph.readers[relu.output.name] > 1:\n                continue\n", """\
            if graph.readers[relu.output.name] > 1:
                kept = Value(relu.output.name + "_", pool.output.type)
                nodes[place : place + 1] = [replace(pool, inputs=relu.inputs, outputs=(kept,)), replace(relu, inputs=(kept,), outputs=(pool.output,))]
                changed = again = True
                break
""", "bytes more"),
    Wrong("graph output", "6.4", "graph.readers[relu.output.name] > 1", "len(graph.users[relu.output.name]) > 1", "not the same function|output of the graph, too"),
    Wrong("any pool", "6.4", 'if pool.op == "MaxPool"', 'if "Pool" in pool.op', "not the same function|the mean of what was cut"),
    Wrong("places are read", "6.4", " or len(pool.results) > 1", "", "GraphError|second output"),
    Wrong("places are read, and kept", "6.4", 'relu.op != "Relu" or len(pool.results) > 1:\n                continue', 'relu.op != "Relu":\n                continue\n'
          "            if len(pool.results) > 1:\n                pooled = Value(relu.output.name, pool.output.type)\n"
          "                nodes[place : place + 1] = [replace(pool, inputs=relu.inputs, outputs=(pooled, pool.outputs[1])), replace(relu, inputs=(pooled,), outputs=(pool.output,))]\n"
          "                nodes.remove(relu)\n                changed = again = True\n                break", "second output"),
    Wrong("a Relu further away", "6.4", "            if relu is None or", "            if relu is not None and relu.op == 'Mul' and relu.uses[0].name in makers:\n"
          "                second = makers[relu.uses[0].name]\n"
          "                if second.op == 'Relu' and graph.readers[second.output.name] == 1:\n"
          "                    nodes[place : place + 1] = [replace(pool, outputs=(Value('new', pool.output.type),)), replace(second, inputs=(Value('new', pool.output.type),), outputs=(pool.output,))]\n"
          "                    nodes[nodes.index(relu)] = replace(relu, inputs=(second.uses[0], *relu.uses[1:]))\n"
          "                    nodes.remove(second)\n                    changed = again = True\n                    break\n"
          "            if relu is None or", "not the same function|between the Relu and the pool"),
    Wrong("new object when idle", "6.4", " if changed else graph", "", "new object|return the graph it was given"),
    Wrong("one pool only", "6.4", "changed = again = True", "changed = True", "idempotence|more rounds"),
    Wrong("there and back", "6.4", "    nodes = list(graph.nodes)\n", "    nodes = list(graph.nodes)\n    if len(nodes) > 8:\n        graph = replace(graph, nodes=(*nodes, replace(nodes[-1], outputs=(Value(f'v{len(nodes)}', nodes[-1].output.type),))))\n"
          "        nodes, graph = list(graph.nodes), graph\n", "termination|still changes"),
    Wrong("Relu dropped", "6.4", "[first, second]", "[replace(pool, inputs=relu.inputs)]", "equivalence"),
    Wrong("old type", "6.4", "Value(relu.output.name, pool.output.type)", "relu.output", "needs its new type|can be saved"),
    Wrong("nothing done", "6.4", "nodes = list(graph.nodes)", "return graph", "saves 0 bytes"),
    Wrong("nodes for a graph", "6.4", "return replace(graph, nodes=tuple(nodes)) if changed else graph", "return tuple(nodes)", "a pass gives a Graph"),
    Wrong("wrong order", "6.4", "[first, second]", "[second, first]", "GraphError"),
    Wrong("a rule of labkit", "6.4", "nodes = list(graph.nodes)", "from labkit.passes.dead import eliminate_dead\n    return eliminate_dead(graph)", "that is what you are to write here"),
    # 6.5
    Wrong("read only", "6.5", "2 * value.type.nbytes", "value.type.nbytes", "it reads it, and then"),
    Wrong("one for each reader", "6.5", "nbytes += 2 * value.type.nbytes",
          "nbytes += 2 * value.type.nbytes * ([n.output.name in inside for n in graph.nodes if value in images(n)]\n"
          "                                               + [False] * (value.name in graph.output_names)).count(not here)", "can two that want the same value"),
    Wrong("transforms around each node", "6.5", "made_inside = dict", "return sum(2 * v.type.nbytes for n in graph.nodes if n.output.name in inside for v in (*images(n), n.output))\n    made_inside = dict",
          "between two nodes of the same order"),
    Wrong("input forgotten", "6.5", "dict.fromkeys(graph.inputs, False)", "{}", "the input of the graph arrive"),
    Wrong("outputs forgotten", "6.5", "            wanted.add(False)", "            pass", "the caller want the outputs"),
    Wrong("weights transformed", "6.5", "    return nbytes\n", "    for name in inside:\n        nbytes += sum(2 * v.type.nbytes for v in graph.producers[name].uses if v.name in graph.constants)\n    return nbytes\n",
          "weights are constant"),
    Wrong("elements for bytes", "6.5", "2 * value.type.nbytes", "2 * value.type.size", "bytes are asked"),
    Wrong("transforms counted", "6.5", "2 * value.type.nbytes", "1", "how many transforms"),
    Wrong("labkit's own plan", "6.5", "made_inside = dict", "from labkit.passes.layout import strategies\n    return strategies(graph, Hardware.preset('dsp'))[2].dram_bytes\n    made_inside = dict",
          "that is what you are to write here"),
    # 6.6
    Wrong("around each convolution", "6.6", "    best = None\n", "    return list(fixed)\n    best = None\n", "around each convolution"),
    Wrong("one layout everywhere", "6.6", "    best = None\n", "    return [*fixed, *free]\n    best = None\n", "all that can be"),
    Wrong("convolutions are free, too", "6.6", "free = [node.output.name for node in graph.nodes if node.op in EITHER]", "free = []\n    fixed = set()", "machine's order only"),
    Wrong("products follow", "6.6", "node.op in MACHINE_ONLY}", "node.op in (*MACHINE_ONLY, 'MatMul')}", "keeps the file's order"),
    Wrong("one for each reader", "6.6", "            if any((name in inside) != (maker in inside) for name in readers[value.name]):\n                nbytes += 2 * value.type.nbytes",
          "            nbytes += sum((name in inside) != (maker in inside) for name in readers[value.name]) * value.type.nbytes", "can do"),
    Wrong("most bytes", "6.6", "nbytes < best[0]", "nbytes > best[0]", "can do"),
    Wrong("outputs forgotten", "6.6", '\n        + [""] * (value.name in graph.output_names)', "", "can do"),
    Wrong("the other side", "6.6", "sorted(best[1])", "[name for name in graph.producers if name not in best[1]]", "a convolution"),
    Wrong("a number for names", "6.6", "sorted(best[1])", "best[0]", "names of nodes are expected"),
    Wrong("labkit's own cut", "6.6", "    best = None\n", "    from labkit.passes.layout import strategies\n    plan = strategies(graph, Hardware.preset('edge-npu'))[2]\n"
          "    return [name for name, order in plan.labels.items() if order == 'NHWC']\n    best = None\n", "that is what you are to write here"),
    # 6.7
    Wrong("the largest SRAM", "6.7", 'return "extended", sram_kib, True', 'return "extended", max(sizes_kib), True', "a smaller SRAM will do"),
    Wrong("the smallest SRAM", "6.7", _BUDGET, "    return 'extended', min(sizes_kib), True\n" + _BUDGET, "more than the budget|With so little SRAM"),
    Wrong("nothing fused", "6.7", 'return "extended"', 'return "basic"', "more than the budget|a kernel of its own"),
    Wrong("no optimiser", "6.7", 'return "extended"', 'return "none"', "more than the budget|a kernel of its own"),
    Wrong("tensors do not stay", "6.7", 'return "extended", sram_kib, True', 'return "extended", sram_kib, False', "more than the budget|where could they stay"),
    Wrong("tensors never stay", "6.7", "    return \"extended\", sram_kib, True", """\
    for sram_kib in sorted(sizes_kib):
        machine = replace(hardware, sram_bytes=sram_kib * 1024)
        if schedule(optimize(graph, "extended", machine).graph, machine).dram_bytes <= budget_bytes:
            return "extended", sram_kib, False
    return "extended", max(sizes_kib), False""", "budget|Small tensors"),
    Wrong("op by op", "6.7", "return reside(schedule(network, machine), network).schedule.dram_bytes", "return 0 if cost(network, machine).dram_bytes else 1", "more than the budget|labkit.cost counts each tensor once"),
    Wrong("KB for KiB", "6.7", 'return "extended", sram_kib, True', 'return "extended", sram_kib * 1000, True', "none of the sizes"),
    Wrong("bytes for KiB", "6.7", 'return "extended", sram_kib, True', 'return "extended", sram_kib * 1024, True', "none of the sizes"),
    Wrong("no such level", "6.7", 'return "extended"', 'return "fused"', "there are"),
    Wrong("some rows twice", "6.7", 'return "extended"', 'return "all"', "computes some rows twice|there are none, basic, extended, layout"),
    Wrong("a report for a choice", "6.7", 'return "extended", sram_kib, True', "return optimize(graph)", "expected level"),
    Wrong("by the specification", "6.1", "", """\
def speedup(before, after, *machine):
    return watched(before, *machine, 1e-5) / watched(after, *machine, 1e-5)
""",
          "for each kernel: seconds of arithmetic"),
]  # fmt: skip

RIGHT = [
    Right("sums over a generator", "6.1", "", "def speedup(before, after, peak, bandwidth, launch):\n"
          "    seconds = lambda kernels: sum(max(f / peak, n / bandwidth) for f, n in kernels) + launch * len(kernels)\n    return seconds(before) / seconds(after)"),
    Right("NumPy", "6.1", "", "def speedup(before, after, peak, bandwidth, launch):\n    times = [np.maximum(k[:, 0] / peak, k[:, 1] / bandwidth).sum() + launch * len(k)\n"
          "             for k in (np.array(before, float), np.array(after, float))]\n    return np.float64(times[0] / times[1])"),
    Right("prints and warns", "6.1", "return times[0]", "import warnings\n    warnings.warn('look')\n    print(times)\n    return times[0]"),
    Right("from the costs of the report", "6.2", "", "def saved_by_pass(report):\n    from collections import Counter\n    saved = Counter()\n"
          "    for step, before, after in zip(report.steps, report.costs, report.costs[1:]):\n        saved[step.name] += before.dram_bytes - after.dram_bytes\n    return saved"),
    Right("from plain data, backwards", "6.2", "", "def saved_by_pass(report):\n    data = report.to_dict()\n    rows = [data['before'], *data['steps']]\n    saved = dict.fromkeys(report.passes, 0)\n"
          "    for place in range(len(rows) - 1, 0, -1):\n        saved[rows[place]['pass']] += np.int64(rows[place - 1]['dram_bytes'] - rows[place]['dram_bytes'])\n    return saved"),
    Right("depth by depth", "6.3", "", """\
def fewest_runs(graph, passes):
    def search(graph, depth):
        after = {name: run(graph) for name, run in passes.items()}
        if all(new is graph for new in after.values()):
            return []
        for name, new in after.items():
            if depth and new is not graph and (rest := search(new, depth - 1)) is not None:
                return [name, *rest]
        return None

    depth = 0
    while (found := search(graph, depth)) is None:
        depth += 1
    return tuple(found)
"""),
    Right("another order of trying", "6.3", "for name, run in passes.items()}", "for name, run in reversed(passes.items())}"),
    Right("a word", "6.3", "return names\n", 'return "".join(names)\n'),
    Right("new names and rebuilt nodes", "6.4", "pooled = Value(relu.output.name, pool.output.type)", "pooled = Value(f'{relu.output.name}_of_{pool.output.name}', pool.output.type)") ,
    Right("recursion", "6.4", "", """\
def relu_behind_pool(graph):
    for place, pool in enumerate(graph.nodes):
        relu = graph.producers.get(pool.uses[0].name) if pool.uses else None
        fits = relu is not None and (relu.op, pool.op, len(pool.results)) == ("Relu", "MaxPool", 1)
        if fits and graph.readers[relu.output.name] == 1:
            small = Value(relu.output.name, pool.output.type)
            two = (replace(pool, inputs=(relu.uses[0],), outputs=(small,)), replace(relu, inputs=(small,), outputs=pool.outputs))
            rest = [node for node in graph.nodes[:place] if node is not relu]
            return relu_behind_pool(replace(graph, nodes=(*rest, *two, *graph.nodes[place + 1 :])))
    return graph
"""),
    Right("prints", "6.4", "nodes = list(graph.nodes)", "print(len(graph.nodes))\n    nodes = list(graph.nodes)"),
    Right("readers first", "6.5", "", """\
def transform_bytes(graph, inside):
    inside, wants = set(inside), {}
    for node in graph.nodes:
        for value in images(node):
            wants.setdefault(value, set()).add(node.output.name in inside)
    for value in graph.outputs:
        wants.setdefault(value, set()).add(False)
    made = {node.output: node.output.name in inside for node in graph.nodes}
    return np.int64(sum(2 * v.type.nbytes for v, sides in wants.items() if v.name not in graph.constants and (not made.get(v, False)) in sides))
"""),
    Right("a set of names", "6.6", "return sorted(best[1])", "return best[1]"),
    Right("free nodes one by one, from many starts", "6.6", "    best = None\n", """\
    def bytes_of(inside):
        return sum(2 * v.type.nbytes for v, m in values if any((n in inside) != (m in inside) for n in readers[v.name]))

    found = []
    for code in range(1 << len(free)):
        inside = fixed | {name for place, name in enumerate(free) if code >> place & 1}
        found.append((bytes_of(inside), sorted(inside)))
    return tuple(min(found)[1])
    best = None
"""),
    Right("bisection", "6.7", _BUDGET, """\
    sizes = sorted(sizes_kib)
    low, high = 0, len(sizes) - 1
    while low < high:
        middle = (low + high) // 2
        if moved(sizes[middle]) <= budget_bytes:
            high = middle
        else:
            low = middle + 1
    return ["extended", np.int64(sizes[low]), np.bool_(True)]
""" + _BUDGET),
    Right("largest first", "6.7", _BUDGET, """\
    found = max(sizes_kib)
    for size in sorted(sizes_kib, reverse=True):
        if moved(size) > budget_bytes:
            break
        found = size
    return "extended", found, True
""" + _BUDGET),
    Right("by the specification", "6.6", "", """\
def place_transforms(graph):
    from itertools import combinations

    best = [node.output.name for node in graph.nodes if node.op == "Conv"]
    free = [node.output.name for node in graph.nodes if node.op in EITHER]
    fixed = tuple(best)
    for number in range(len(free) + 1):
        for chosen in combinations(free, number):
            best = [*fixed, *chosen] if is_beaten(graph, best, [*fixed, *chosen]) else best
    return best
"""),
]  # fmt: skip
