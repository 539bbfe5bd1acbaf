"""Exercise 05: misconceptions about what may go, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

_USES = "wanted |= {value.name for value in node.uses}"
_INPUTS = "wanted |= {value.name for value in node.inputs if value}"

WRONG = [
    # 5.1
    Wrong("forward from the inputs", "5.1", "return alive[::-1]", "return [p for p, n in enumerate(graph.nodes) if n.uses]", "all can be reached from the inputs"),
    Wrong("captures not counted", "5.1", _USES, _INPUTS, "branches of an If"),
    Wrong("first output only", "5.1", "for value in graph.outputs}", "for value in graph.outputs[:1]}", "more than one output"),
    Wrong("first result only", "5.1", "for value in node.results)", "for value in node.outputs[:1])", "several results"),
    Wrong("direct makers only", "5.1", f"            {_USES}\n", "", "these make the outputs themselves"),
    Wrong("read is alive", "5.1", "return alive[::-1]",
          "read = {v.name for n in graph.nodes for v in n.uses} | graph.output_names\n"
          "    return [p for p, n in enumerate(graph.nodes) if any(v.name in read for v in n.results)]", "the reader may be dead"),
    Wrong("the dead ones", "5.1", "return alive[::-1]", "return [p for p in range(len(graph.nodes)) if p not in alive]", "these are the dead ones"),
    Wrong("backwards", "5.1", "return alive[::-1]", "return alive", "in ascending order"),
    Wrong("walks forwards", "5.1", "reversed(range(len(graph.nodes)))", "range(len(graph.nodes))", "follow the reads backwards"),
    Wrong("counted from 1", "5.1", "return alive[::-1]", "return [p + 1 for p in alive[::-1]]", "positions count from 0"),
    Wrong("names for positions", "5.1", "alive.append(position)", "alive.append(node.outputs[0].name)", "expected a whole number"),
    # 5.2
    Wrong("unread inputs removed", "5.2", "return replace(graph, nodes=tuple(reversed(nodes))",
          "read = {v.name for n in nodes for v in n.uses}\n"
          "    return replace(graph, inputs=tuple(v for v in graph.inputs if v.name in read), nodes=tuple(reversed(nodes))", "changed the interface"),
    Wrong("default dropped", "5.2", "    wanted |= graph.input_names\n", "", "took the default"),
    Wrong("outputs removed", "5.2", "return replace(graph,", "return replace(graph, outputs=graph.outputs[:1],", "changed the interface"),
    Wrong("capture not counted", "5.2", _USES, _INPUTS, "branches of an If"),
    Wrong("orphans stay", "5.2", "if name in wanted}", "}", "an orphan"),
    Wrong("one layer only", "5.2", "if any(value.name in wanted for value in node.results)",
          "if any(value.name in graph.users or value.name in wanted for value in node.results)", "a dead node may be read by another dead one"),
    Wrong("constant output removed", "5.2", "wanted |= graph.input_names", "wanted |= graph.input_names\n    wanted -= graph.output_names & graph.constants.keys()", "one may be a constant"),
    Wrong("new object when idle", "5.2", "if len(nodes) == len(graph.nodes) and", "if False and", "the graph that came in"),
    Wrong("constants alone are no work", "5.2", " and len(constants) == len(graph.constants)", "", "an orphan"),
    Wrong("order turned round", "5.2", "tuple(reversed(nodes))", "tuple(nodes)", "in the order it had"),
    Wrong("a list of nodes", "5.2", "return replace(graph, nodes=tuple(reversed(nodes)), constants=constants)", "return nodes", "expected a Graph"),
    Wrong("labkit's own pass", "5.2", "wanted = {value", "from labkit.passes.dead import eliminate_dead as own\n    return own(graph)\n    wanted = {value",
          "that is what you are to write here"),
    # 5.3
    Wrong("equal text only", "5.3", "range(size)[start:end:step] != range(size)", "(start, end, step) != (0, size, 1)", "lies past the end"),
    Wrong("step forgotten", "5.3", "range(size)[start:end:step] !=", "range(size)[start:end] !=", "look at the step"),
    Wrong("counted, not ordered", "5.3", "range(size)[start:end:step] != range(size)", "len(range(size)[start:end:step]) != size", "in which order"),
    Wrong("end −1 is the end", "5.3", "elif range", "elif (start, end, step) == (0, -1, 1):\n            pass\n        elif range", "leaves the last one out"),
    Wrong("axes ignored", "5.3", "for start, end, axis, step in zip(starts, ends, axes, steps, strict=True)",
          "for start, end, axis, step in zip(starts, ends, range(len(starts)), steps)", "the same place of axes"),
    Wrong("a symbol is any number", "5.3", "                return False\n        elif", "                return True\n        elif", "a symbol stands for"),
    Wrong("never a symbol", "5.3", "if (start, step) != (0, 1) or end < 2**31 - 1:", "if True:", "a symbol stands for"),
    Wrong("a symbol is skipped", "5.3", "if (start, step) != (0, 1) or end < 2**31 - 1:", "if False:", "a symbol stands for"),
    Wrong("one axis is enough", "5.3", "return True", "return all(isinstance(size, str) or range(size)[start:end:step] == range(size) for start, end, size, step in "
          "[(starts[0], ends[0], shape[axes[0]], steps[0])])\n\n\n_all = takes_all\n\n\ndef takes_all(starts, ends, axes, steps, shape):\n"
          "    return _all(starts[-1:], ends[-1:], axes and axes[-1:] or (len(starts) - 1,), steps and steps[-1:], shape)", "all axes must be whole"),
    Wrong("the largest int64 only", "5.3", "end < 2**31 - 1", "end < 2**63 - 1", "beyond every length"),
    Wrong("negative starts are parts", "5.3", "elif range", "elif start < 0 or range", "counts from the end"),
    Wrong("what lies before is too far", "5.3", "elif range", "elif start < -size or range", "before the beginning"),
    Wrong("a step is a part", "5.3", "elif range", "elif step != 1 or range", "any step is right"),
    Wrong("axes from the last one", "5.3", "tuple(range(len(starts)))", "tuple(range(-len(starts), 0))", "without axes|gave False"),
    Wrong("any large end will do", "5.3", "end < 2**31 - 1", "end < 10**5", "a symbol stands for"),
    Wrong("start of a symbol", "5.3", "(start, step) != (0, 1)", "step != 1", "a symbol stands for"),
    Wrong("a symbol anywhere", "5.3", "    return True", "    return not any(isinstance(size, str) for size in shape) or 0 in axes", "not touched here"),
    # 5.4
    Wrong("no proof of shape for units", "5.4", "same = x is not None and", "same = node.op in units and x is not None or x is not None and", "makes x larger"),
    Wrong("proof for Mul only", "5.4", "x.shape == output.shape", "(x.shape == output.shape or node.op == 'Add')", "makes x larger"),
    Wrong("proof for Add only", "5.4", "x.shape == output.shape", "(x.shape == output.shape or node.op == 'Mul')", "makes x larger"),
    Wrong("1 / x is x", "5.4", '("Mul", "Add") and', '("Mul", "Add", "Div") and', "1 / x is not x"),
    Wrong("ones are units of Add", "5.4", '"Add": 0, "Sub": 0}', '"Add": 1, "Sub": 0}', "a no-op stayed"),
    Wrong("Reshape of equal size", "5.4", "x.shape == output.shape", "(x.shape == output.shape or None not in (x.type, output.type) and node.op == 'Reshape')",
          "the same number of elements is no proof"),
    Wrong("symbols never equal", "5.4", "x.shape == output.shape", "x.shape == output.shape and x.type.is_static", "a no-op stayed"),
    Wrong("Identity of an output removed", "5.4", "if same and output.name not in graph.output_names:", "if same:", "an output of the graph keeps its name"),
    Wrong("output renamed", "5.4", "if same and output.name not in graph.output_names:\n            instead[output.name] = x",
          "if same:\n            instead[output.name] = x\n            graph = replace(graph, nodes=graph.nodes, outputs=tuple(x if v.name == output.name else v for v in graph.outputs))",
          "changed the interface"),
    Wrong("0 − x is x", "5.4", 'if node.op in ("Mul", "Add") and', "if", "0 − x is not x"),
    Wrong("one unit for all", "5.4", "array == units[node.op]", "(array == 1) | (array == 0)", "x · 0 is not x"),
    Wrong("first element only", "5.4", "(array == units[node.op]).all()", "array.flat[0] == units[node.op]", "all elements of the unit count"),
    Wrong("default of an input is constant", "5.4", "array = graph.constant(other)", "array = graph.constants.get(other.name)", "another value than the default"),
    Wrong("capture not counted", "5.4", "node = old.rename(instead)", "node = replace(old, inputs=tuple(v and instead.get(v.name, v) for v in old.inputs))",
          "branches of an If"),
    Wrong("one in a row", "5.4", "node = old.rename(instead)", "node = old", "what do the readers of a no-op read instead"),
    Wrong("scalars only", "5.4", "array is not None and (", "array is not None and array.ndim == 0 and (", "a no-op stayed"),
    Wrong("new object when idle", "5.4", " if instead else graph", "", "the graph that came in"),
    Wrong("non-idempotent", "5.4", "node = old.rename(instead)\n        x = handed_on(node)", "node = old.rename(instead)\n        x = None if node.inputs and node.inputs[0] and "
          "node.inputs[0] is not old.inputs[0] else handed_on(node)", "a no-op stayed"),
    # 5.5
    Wrong("attributes ignored", "5.5", ", tuple(sorted(attrs.items()))", "", "other attributes is another expression"),
    Wrong("defaults ignored", "5.5", "{**default_attributes(node.op, graph.opset), **node.attrs}", "node.attrs", "has its default"),
    Wrong("order of Add and Mul", "5.5", 'if node.op in ("Add", "Mul"):', "if False:", "do not mind the order"),
    Wrong("only Add sorted", "5.5", 'in ("Add", "Mul"):', 'in ("Add",):', "do not mind the order"),
    Wrong("only Mul sorted", "5.5", 'in ("Add", "Mul"):', 'in ("Mul",):', "do not mind the order"),
    Wrong("Sub sorted, too", "5.5", 'if node.op in ("Add", "Mul"):', "if True:", "x − y is not y − x"),
    Wrong("+0 = −0", "5.5", "array.tobytes()\n", "tuple(array.ravel().tolist())\n", "+0 and −0 are equal"),
    Wrong("shape ignored", "5.5", "str(array.dtype), array.shape, array", "str(array.dtype), array", "a row and a column"),
    Wrong("constants by name", "5.5", "if array is not None:", "if False:", "equal under two names"),
    Wrong("constants by shape", "5.5", ", array.tobytes()", "", "when all their bytes are"),
    Wrong("random nodes merged", "5.5", "node.op in RANDOM or node.bodies", "node.bodies", "they draw different numbers"),
    Wrong("empty places dropped", "5.5", "for value in node.inputs]", "for value in node.inputs if value]", "a place that is left empty counts"),
    Wrong("capture not counted", "5.5", "node = old.rename(instead)", "node = replace(old, inputs=tuple(v and instead.get(v.name, v) for v in old.inputs))",
          "branches of an If"),
    Wrong("output merged away", "5.5", "if seen is node or any(value.name in graph.output_names for value in node.results)", "if seen is node", "an output of the graph keeps its name"),
    Wrong("looks before it renames", "5.5", "key = key_of(node)", "key = key_of(old)", "rename the inputs before you look"),
    Wrong("new object when idle", "5.5", " if instead else graph", "", "the graph that came in"),
    Wrong("labkit's own pass", "5.5", "def identity_of", "from labkit.passes.cse import share as own\n    return own(graph)\n\n    def identity_of",
          "that is what you are to write here"),
    # 5.6
    Wrong("one round", "5.6", "if graph is before:", "if True:", "as long as a round changes anything"),
    Wrong("last pass decides", "5.6", "for one in passes:\n            graph", "for one in passes:\n            before = graph\n            graph", "whichever did last"),
    Wrong("counts nodes", "5.6", "if graph is before:", "if len(graph.nodes) == len(before.nodes):", "as long as a round changes anything"),
    Wrong("equal sizes are rest", "5.6", "if graph is before:", "if size(graph) == size(before):", "it might go on for ever"),
    Wrong("a limit of rounds", "5.6", "while True:", "while rounds < 100:", "gave nothing back|a long way is no endless one"),
    Wrong("a limit, then back", "5.6", "if graph is before:", "if graph is before or rounds == 100:", "a long way is no endless one"),
    Wrong("no larger is enough", "5.6", "if not size(graph) < size(before):", "if size(graph) > size(before):", "it might go on for ever"),
    Wrong("never an error", "5.6", "if not size(graph) < size(before):", "if False:", "it might go on for ever"),
    Wrong("larger is allowed", "5.6", "if not size(graph) < size(before):", "if size(graph) == size(before):", "a round made the graph larger"),
    Wrong("two rounds at least", "5.6", "if graph is before:", "if graph is before and rounds > 1:", "with nothing to do"),
    Wrong("each pass must shrink", "5.6", "graph = one(graph)\n", "after = one(graph)\n            if after is not graph and not size(after) < size(graph):\n"
          "                raise ValueError('larger')\n            graph = after\n", "what counts is the size after the round"),
    Wrong("last round not counted", "5.6", "return graph, rounds", "return graph, rounds - 1", "is the last round"),
    Wrong("passes to rest one by one", "5.6", "graph = one(graph)\n", "graph = one(graph)\n            while one(graph) is not graph:\n                graph = one(graph)\n",
          "each round once"),
    Wrong("graph alone", "5.6", "return graph, rounds", "return graph", "the number of rounds"),
    # 5.7
    Wrong("greedy", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "return sorted(range(len(passes)), key=lambda one: left_over(graph, passes, (one,)))", "comes first here"),
    Wrong("greedy, reversed", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "return sorted(range(len(passes)), key=lambda one: left_over(graph, passes, (one,)))[::-1]", "is that a rule"),
    Wrong("greedy, step by step", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "order = ()\n    while len(order) < len(passes):\n        rest = [i for i in range(len(passes)) if i not in order]\n"
          "        order += (min(rest, key=lambda i: left_over(graph, passes, (*order, i))),)\n    return order", "it leaves"),
    Wrong("as they came", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "return tuple(range(len(passes)))", "in which they came"),
    Wrong("the worst", "5.7", "return min(", "return max(", "the best order"),
    Wrong("what is left, not the order", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "return min(left_over(graph, passes, order) for order in permutations(range(len(passes))))", "expected a tuple or a list"),
    # 5.8
    Wrong("one round", "5.8", "        if graph is before:\n            return graph", "        return graph", "it found more to do"),
    Wrong("no folding", "5.8", "in (folded, ", "in (", "would do"),
    Wrong("no sharing", "5.8", "with_transposes_merged, shared, ", "with_transposes_merged, ", "would do"),
    Wrong("no dead code", "5.8", "shared, without_dead)", "shared)", "would do"),
    Wrong("Transposes always cancel", "5.8", "return inner.inputs[0] if both == tuple(range(len(both))) else None", "return inner.inputs[0]", "lacks a proof"),
    Wrong("composed the other way", "5.8", "both = tuple(permutation(inner)[axis] for axis in permutation(node))\n                node",
          "both = tuple(permutation(node)[axis] for axis in permutation(inner))\n                node", "lacks a proof"),
    Wrong("no proof of shape", "5.8", "x if x is not None and x.shape is not None and x.shape == node.outputs[0].shape else None", "x", "lacks a proof"),
    Wrong("unit of the wrong side", "5.8", "if node.op in commutative and graph.constant(other) is None", "if graph.constant(other) is None", "lacks a proof"),
    Wrong("default folded", "5.8", "value.name in constants and value.name not in graph.input_names for", "value.name in constants for", "is caught: equivalence"),
    Wrong("asks labkit", "5.8", "from labkit.interpreter import evaluate", 'return optimize(graph, level="basic").graph\n    from labkit.interpreter import evaluate',
          "that is what you are to write here"),
    Wrong("nothing at all", "5.8", "while True:", "return graph\n    while True:", "would do"),
    Wrong("by the specification", "5.3", "", """\
def takes_all(starts, ends, axes, steps, shape):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    return takes_all_of(starts, ends, axes, steps, [99 if isinstance(length, str) else length for length in shape])
""",
          "a symbol stands for"),
    Wrong("by the specification", "5.6", "", """\
def to_rest(graph, passes, size):
    rounds = 1
    while not is_at_rest(graph, passes, rounds):
        rounds += 1
    for one in passes * rounds:
        graph = one(graph)
    return graph, rounds
""",
          "it might go on for ever"),
]  # fmt: skip

RIGHT = [
    Right("by the specification", "5.1", "", "def live_nodes(graph):\n    return [p for p, n in enumerate(graph.nodes) if any(depends_on(graph, v.name, n) for v in graph.outputs)]"),
    Right("recursion", "5.1", "", """\
def live_nodes(graph):
    found = set()

    def visit(name):
        node = graph.producers.get(name)
        if node is not None and graph.nodes.index(node) not in found:
            found.add(graph.nodes.index(node))
            for value in node.uses:
                visit(value.name)

    for value in graph.outputs:
        visit(value.name)
    return tuple(sorted(found))
"""),
    Right("until nothing is added", "5.1", "", """\
def live_nodes(graph):
    wanted, before = {v.name for v in graph.outputs}, None
    while wanted != before:
        before = set(wanted)
        wanted |= {v.name for n in graph.nodes if wanted & {r.name for r in n.results} for v in n.uses}
    return np.flatnonzero([bool(wanted & {r.name for r in n.results}) for n in graph.nodes])
"""),
    Right("prints and warns", "5.1", "return alive[::-1]", "import warnings\n    warnings.warn('look')\n    print(alive)\n    return alive[::-1]"),
    Right("node by node, from readers", "5.2", "", """\
def eliminate_dead(graph):
    lean = graph
    while True:
        nodes = tuple(n for n in lean.nodes if any(lean.readers.get(v.name, 0) for v in n.results))
        constants = {k: a for k, a in lean.constants.items() if lean.readers.get(k, 0) or k in lean.input_names}
        if len(nodes) == len(lean.nodes) and len(constants) == len(lean.constants):
            return lean
        lean = Graph(lean.name, lean.inputs, lean.outputs, nodes, constants, lean.opsets, lean.captures)
"""),
    Right("another name for the graph", "5.2", "return replace(graph, nodes", "return replace(graph, name='lean', nodes"),
    Right("element by element", "5.3", "elif range(size)[start:end:step] != range(size):", "elif list(range(size))[start:end:step] != list(range(size)):"),
    Right("slice.indices", "5.3", "elif range(size)[start:end:step] != range(size):",
          "elif size > 1 and slice(start, end, step).indices(size) != (0, size, 1) or not len(range(size)[start:end:step]):"),
    Right("NumPy's bool", "5.3", "    return True", "    return np.bool_(True)"),
    Right("NumPy's slice", "5.3", "elif range(size)[start:end:step] != range(size):", "elif not np.array_equal(np.arange(size)[start:end:step], np.arange(size)):"),
    Right("allclose for all", "5.4", "(array == units[node.op]).all()", "np.array_equal(array, np.full_like(array, units[node.op]))"),
    Right("to a fixed point", "5.4", "", """\
_once = remove_no_ops


def remove_no_ops(graph):
    lean = _once(graph)
    return graph if lean is graph else remove_no_ops(lean)
"""),
    Right("sorted by name", "5.5", "inputs.sort(key=repr)", "inputs = sorted(inputs, key=str, reverse=True)"),
    Right("a text for a key", "5.5", "return node.op, node.domain,", "return repr((node.op, sorted(attrs.items()), inputs)), node.domain,"),
    Right("linear search", "5.5", "seen = first.setdefault(key, node)", "seen = next((n for k, n in first.items() if k == key), node)\n        first.setdefault(key, node)"),
    Right("recursion", "5.6", "", """\
def to_rest(graph, passes, size, rounds=1):
    after = graph
    for one in passes:
        after = one(after)
    if after is graph:
        return [graph, rounds]
    if size(after) >= size(graph):
        raise ValueError("not smaller")
    return to_rest(after, passes, size, rounds + 1)
"""),
    Right("a NumPy integer", "5.6", "return graph, rounds", "return graph, np.int64(rounds)"),
    Right("all orders in a loop", "5.7", "return min(permutations(range(len(passes))), key=lambda order: left_over(graph, passes, order))",
          "best = None\n    for order in permutations(range(len(passes))):\n        left = left_over(graph, passes, order)\n"
          "        if best is None or left <= best[0]:\n            best = left, order\n    return list(best[1])"),
    Right("another order of passes", "5.8", "in (folded, without_no_ops, without_pairs, with_transposes_merged, shared, without_dead)",
          "in (without_dead, shared, with_transposes_merged, without_pairs, without_no_ops, folded)"),
    Right("identity Transposes as no-ops", "5.8", "return inner.inputs[0] if both == tuple(range(len(both))) else None",
          "return inner.inputs[0] if list(both) == sorted(both) else None"),
    Right("by the specification", "5.2", "", """\
def eliminate_dead(graph):
    while spare := to_spare(graph):
        nodes = tuple(node for node in graph.nodes if node is not graph.producers.get(spare[0]))
        constants = {name: array for name, array in graph.constants.items() if name != spare[0]}
        graph = replace(graph, nodes=nodes, constants=constants)
    return graph
"""),
    Right("by the specification", "5.4", "", """\
def remove_no_ops(graph):
    for node in graph.nodes:
        for x in node.uses:
            if x.name not in graph.constants and node.op not in ("Relu", "Sigmoid", "If") and seems_idle(graph, node, x):
                rest = tuple(other.rename({node.output.name: x}) for other in graph.nodes if other is not node)
                return remove_no_ops(replace(graph, nodes=rest))
    return graph
"""),
]  # fmt: skip
