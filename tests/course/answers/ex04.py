"""Exercise 04: misconceptions about what is constant and what may be folded, and other ways to be right."""

# ruff: noqa: E501  a table: one row, one case

from tests.course.planted import Right, Wrong

_WEIGHT = "weight * scale.reshape(-1, *[1] * (weight.ndim - 1))"
_KINDS = ("net = Net(x)  # arithmetic", "net = Net(x)  # a second reader", "net = Net(x)  # the caller reads")

WRONG = [
    # 4.1
    Wrong("default counted", "4.1", " - graph.input_names", "", "the default of an input is no constant"),
    Wrong("random counted", "4.1", "node.op not in RANDOM and", "", "a random node gives something else"),
    Wrong("random, and all of nothing", "4.1", "reads and node.op not in RANDOM and all", "all", "a random node gives something else"),
    Wrong("all of nothing", "4.1", 'if reads and node.op not in RANDOM', 'if node.op not in RANDOM - {"RandomUniform"}', "a node that reads nothing"),
    Wrong("direct only", "4.1", "            known |= {value.name for value in node.results}\n", "", "what reads the result of a constant node"),
    Wrong("capture not counted", "4.1", "for value in node.uses]", "for value in node.inputs if value]", "branches of an If"),
    Wrong("any for all", "4.1", "and all(", "and any(", "one constant input is not enough"),
    Wrong("the others", "4.1", "return found", "return [i for i in range(len(graph.nodes)) if i not in found]", "the ones that are not"),
    Wrong("counted from 1", "4.1", "found.append(position)", "found.append(position + 1)", "positions count from 0"),
    Wrong("backwards", "4.1", "return found", "return found[::-1]", "in ascending order"),
    Wrong("names for positions", "4.1", "found.append(position)", "found.append(node.outputs[0].name)", "expected a whole number"),
    # 4.2
    Wrong("folding an overridable input", "4.2", " - graph.input_names", "", "another value than the default"),
    Wrong("folding random", "4.2", "node.op in RANDOM or ", "", "folded a random node"),
    Wrong("one layer", "4.2", "                known.add(value.name)\n", "", "is its result known by then"),
    Wrong("new object when idle", "4.2", " if len(nodes) < len(graph.nodes) else graph", "", "the graph that came in"),
    Wrong("graph changed in place", "4.2", "constants, nodes = dict(graph.constants), []", "constants, nodes = graph.constants, []", "changed the graph that it was given"),
    Wrong("double precision", "4.2", "np.array(array)", "np.array(array, np.float64)", "it was float32"),
    Wrong("axes of length 1 lost", "4.2", "np.array(array)", "np.squeeze(array)", "its shape and its type"),
    Wrong("constants forgotten", "4.2", "nodes=tuple(nodes), constants=constants)", "nodes=tuple(nodes))", "made a graph that is none"),
    Wrong("another name", "4.2", "constants[value.name] = np", 'constants[value.name + "_folded"] = np', "raised KeyError"),
    Wrong("any for all", "4.2", "or not all(", "or not any(", "raised KeyError"),
    Wrong("outputs of the graph removed", "4.2", "return replace(graph, nodes=tuple(nodes),",
          "return replace(graph, outputs=tuple(v for v in graph.outputs if v.name not in constants), nodes=tuple(nodes),", "changed the interface|the caller read a value by its name"),
    Wrong("labkit's own pass", "4.2", "constants, nodes = dict", "from labkit import optimize\n    return optimize(graph, level='basic').graph\n    constants, nodes = dict",
          "that is what you are to write here"),
    # 4.3
    Wrong("gamma and beta swapped", "4.3", "scale = gamma", "gamma, beta = beta, gamma\n    scale = gamma", "γ multiplies"),
    Wrong("epsilon outside of the root", "4.3", "np.sqrt(var + epsilon)", "(np.sqrt(var) + epsilon)", "ε stands in the root"),
    Wrong("epsilon forgotten", "4.3", "var + epsilon", "var", "where is ε"),
    Wrong("variance for deviation", "4.3", "np.sqrt(var + epsilon)", "(var + epsilon)", "the root of the variance"),
    Wrong("mean not scaled", "4.3", "mean * scale", "mean", "μ is subtracted before"),
    Wrong("sign of the mean", "4.3", "beta - mean", "beta + mean", "the sign of μ"),
    Wrong("mean forgotten", "4.3", "beta - mean * scale", "beta", "what becomes of μ"),
    Wrong("beta forgotten", "4.3", "beta - mean * scale", "-mean * scale", "what becomes of β"),
    Wrong("gamma forgotten in the scale", "4.3", "return scale, shift", "return scale / gamma, shift", "without γ"),
    Wrong("shift first", "4.3", "return scale, shift", "return shift, scale", "scale first"),
    Wrong("scale alone", "4.3", "return scale, shift", "return scale", "expected two arrays"),
    Wrong("upside down", "4.3", "return scale, shift", "return 1 / scale, shift", "the other way round"),
    # 4.4
    Wrong("bias forgotten", "4.4", "bias * scale + shift", "shift", "the old bias is missing"),
    Wrong("bias unscaled", "4.4", "bias * scale + shift", "bias + shift", "the old bias is scaled, too"),
    Wrong("shift forgotten", "4.4", "bias * scale + shift", "bias * scale", "the shift is missing"),
    Wrong("shift scaled", "4.4", "bias * scale + shift", "(bias + shift) * scale", "it is not scaled"),
    Wrong("no bias stays none", "4.4", "return folded, shift", "return folded, None", "where would the shift go"),
    Wrong("along the channels", "4.4", "reshape(-1, 1, 1, 1)", "reshape(1, -1, 1, 1)", "filters come first"),
    Wrong("broadcast as it comes", "4.4", "scale.reshape(-1, 1, 1, 1)", "scale", "along the columns"),
    Wrong("overwriting shared weights", "4.4", "folded = weight * scale.reshape(-1, 1, 1, 1)", "weight *= scale.reshape(-1, 1, 1, 1)\n    folded = weight",
          "changed an array"),
    Wrong("weights forgotten", "4.4", "folded = weight * scale.reshape(-1, 1, 1, 1)", "folded = weight", "as it was"),
    Wrong("divided", "4.4", "weight * scale", "weight / scale", "divided by the scale"),
    Wrong("shift in the weights", "4.4", "scale.reshape(-1, 1, 1, 1)", "scale.reshape(-1, 1, 1, 1) + shift.reshape(-1, 1, 1, 1)", "into the bias"),
    # 4.5
    Wrong("second reader overlooked", "4.5", "or graph.readers[conv.outputs[0].name] > 1", "", "who else reads what the Conv gives"),
    Wrong("output of the graph overlooked", "4.5", "graph.readers[conv.outputs[0].name] > 1", "len(graph.users[conv.outputs[0].name]) > 1", "who else reads what the Conv gives"),
    Wrong("capture not counted", "4.5", "graph.readers[conv.outputs[0].name] > 1",
          "conv.outputs[0].name in graph.output_names or sum(v.name == conv.outputs[0].name for n in graph.nodes for v in n.inputs if v) > 1", "who else reads what the Conv gives"),
    Wrong("other nodes overlooked", "4.5", "graph.readers[conv.outputs[0].name] > 1",
          "conv.outputs[0].name in graph.output_names or any(v.name == conv.outputs[0].name for n in graph.nodes for b in n.bodies for v in b.captures)",
          "who else reads what the Conv gives"),
    Wrong("weight not looked at", "4.5", "(*conv.inputs[1:], *norm.inputs[1:])", "(*conv.inputs[2:], *norm.inputs[1:])", "another value than the default"),
    Wrong("training mode folded", "4.5", 'if norm.attrs.get("training_mode", 0)', "if False", "the statistics of the batch"),
    Wrong("defaults are constants", "4.5", "(value.name in constants and value.name not in graph.input_names)", "value.name in constants", "another value than the default"),
    Wrong("weights only looked at", "4.5", "(*conv.inputs[1:], *norm.inputs[1:])", "conv.inputs[1:]", "another value than the default"),
    Wrong("statistics only looked at", "4.5", "(*conv.inputs[1:], *norm.inputs[1:])", "norm.inputs[1:]", "another value than the default"),
    Wrong("bias not looked at", "4.5", "(*conv.inputs[1:], *norm.inputs[1:])", "(conv.inputs[1], *norm.inputs[1:])", "another value than the default"),
    Wrong("overwriting shared weights", "4.5", 'fresh(f"{node.outputs[0].name}_weight")', "conv.inputs[1].name", "new weights need a name of their own"),
    Wrong("epsilon of PyTorch", "4.5", 'node.attrs.get("epsilon", 1e-5)', "1e-5", "go through 4.3"),
    Wrong("no epsilon is none", "4.5", '.get("epsilon", 1e-5)', '.get("epsilon", 0.0)', "that names none"),
    Wrong("gamma and beta swapped", "4.5", "gamma, beta, mean, var =", "beta, gamma, mean, var =", "go through 4.3"),
    Wrong("variance for deviation", "4.5", "gamma / np.sqrt(var", "gamma / (var", "go through 4.3"),
    Wrong("bias forgotten", "4.5", "bias * scale + beta", "beta", "go through 4.3"),
    Wrong("along the channels", "4.5", _WEIGHT, "weight * scale[: weight.shape[1]].reshape(1, -1, 1, 1)", "go through 4.3"),
    Wrong("only with a bias", "4.5", "if conv is None or", "if conv is None or len(conv.inputs) < 3 or", "a pair stayed"),
    Wrong("never shared weights", "4.5", 'or conv.op != "Conv" or', 'or conv.op != "Conv" or graph.readers[conv.inputs[1].name] > 1 or', "a pair stayed"),
    Wrong("attributes lost", "4.5", "outputs=node.outputs[:1])", "outputs=node.outputs[:1], attrs={})", "go through 4.3|made"),
    Wrong("output renamed", "4.5", ", outputs=node.outputs[:1])", ")", "made a graph that is none"),
    Wrong("new object when idle", "4.5", " if len(nodes) < len(graph.nodes) else graph", "", "the graph that came in"),
    Wrong("the old Conv stays", "4.5", "            nodes.remove(conv)\n", "", "a pair stayed"),
    Wrong("labkit's own pass", "4.5", "nodes, makers, constants = [],", "from labkit import optimize\n    return optimize(graph, level='basic').graph\n    nodes, makers, constants = [],",
          "that is what you are to write here"),
    # 4.6
    Wrong("elements for bytes", "4.6", "kind.nbytes for", "kind.size for", "how many bytes has an element"),
    Wrong("KB for KiB", "4.6", "limit_kib * 1024", "limit_kib * 1000", "how many bytes has a KiB"),
    Wrong("less than", "4.6", "<= room", "< room", "exactly as much as the limit is allowed"),
    Wrong("limit only", "4.6", "room = max(limit_kib * 1024, sum(graph.constants[name].nbytes for name in read))", "room = limit_kib * 1024", "the constants that it replaces"),
    Wrong("inputs only", "4.6", "max(limit_kib * 1024, sum(graph.constants[name].nbytes for name in read))", "sum(graph.constants[name].nbytes for name in read)", "limit"),
    Wrong("both together", "4.6", "max(limit_kib * 1024, sum(graph.constants[name].nbytes for name in read))", "limit_kib * 1024 + sum(graph.constants[name].nbytes for name in read)",
          "not both"),
    Wrong("largest input", "4.6", "sum(graph.constants[name].nbytes for name in read))", "max(graph.constants[name].nbytes for name in read))", "All of them together"),
    Wrong("read twice counts twice", "4.6", "{value.name for value in node.uses}", "[value.name for value in node.uses]", "is stored once"),
    Wrong("first result only", "4.6", "for value in node.results]", "for value in node.outputs[:1]]", "not only the first"),
    Wrong("a symbol counts as 1", "4.6", " or not kind.is_static", "", "a size that is not known"),
    Wrong("no type is no bytes", "4.6", "return sum(kind.nbytes for kind in types)", "return sum(kind.nbytes for kind in types if kind)\n\n\ndef may_fold(graph, node, limit_kib):\n"
          "    types = [value.type for value in node.results if value.type]\n    if not all(kind.is_static for kind in types):\n        return False\n"
          "    read = {value.name for value in node.uses}\n    room = max(limit_kib * 1024, sum(graph.constants[name].nbytes for name in read))\n"
          "    return sum(kind.nbytes for kind in types)", "a size that is not known"),
    Wrong("four bytes each", "4.6", "kind.nbytes for kind", "kind.size * 4 for kind", "look at the type"),
    Wrong("always", "4.6", "return sum", "return True\n    return sum", "gave True"),
    # 4.7
    Wrong("one graph", "4.7", "return graphs", "return graphs[:1]", "passes, 14 are enough"),
    Wrong("guards only", "4.7", "return graphs", "return graphs[1:]", "passes, 14 are enough"),
    Wrong("no second reader of any kind", "4.7", "return graphs", "return graphs[:1] + graphs[4:]", "what the Conv gives"),
    Wrong("no caller's values", "4.7", "return graphs", "return graphs[:5] + graphs[7:10]", "passes, 14 are enough"),
    Wrong("random graphs", "4.7", "return graphs", "net = Net(x)\n    draw_ = Node('RandomNormalLike', (x,), (Value('r', x.type),))\n"
          "    return [*graphs, Graph('g', (x,), draw_.outputs, (draw_,))]", "the same in every run"),
    Wrong("an input of its own", "4.7", "draw, channels =", "x = Value('own', x.type)\n    draw, channels =", "the x that the function is given"),
    Wrong("graphs by heart", "4.7", "draw, channels =", "x = Value('x', TensorType((1, 3, 6, 6), 'float32'))\n    draw, channels =", "the x that the function is given"),
    Wrong("too many", "4.7", "return graphs", "return graphs * 2", "20 are allowed"),
    Wrong("one giant", "4.7", "return graphs", "net = Net(x)\n    y = x\n    for _ in range(13):\n        y = net.node('Relu', y)\n    return [*graphs, net.graph(y)]", "12 are allowed"),
    Wrong("passes for graphs", "4.7", "return graphs", "return [lambda graph: graph]", "expected a Graph"),
    Wrong("labkit's own traps", "4.7", "draw, channels =", "from labkit.passes.guards import TRAPS\n    return [trap.graph() for trap in TRAPS]\n    draw, channels =",
          "that is what you are to write here"),
]  # fmt: skip

RIGHT = [
    Right("until nothing is added", "4.1", "", """\
def constant_nodes(graph):
    known, before = {n for n in graph.constants if n not in graph.input_names}, None
    while known != before:
        before = set(known)
        for node in graph.nodes:
            if node.uses and node.op not in RANDOM and {v.name for v in node.uses} <= known:
                known |= {v.name for v in node.results}
    return np.array([i for i, node in enumerate(graph.nodes) if node.results[0].name in known])
"""),
    Right("recursion", "4.1", "", """\
def constant_nodes(graph):
    def fixed(value):
        node = graph.producers.get(value.name)
        if node is None:
            return graph.constant(value) is not None
        return bool(node.uses) and node.op not in RANDOM and all(map(fixed, node.uses))

    return tuple(i for i, node in enumerate(graph.nodes) if fixed(node.results[0]))
"""),
    Right("prints and warns", "4.1", "return found", "import warnings\n    warnings.warn('look')\n    print(found)\n    return found"),
    Right("by running a small graph", "4.2", "results = evaluate(node, constants, graph.opsets)",
          "part = Graph('one', (), node.results, (node,), {v.name: constants[v.name] for v in node.uses}, graph.opsets)\n"
          "        results = list(run(part, {}).values())"),
    Right("one node a call", "4.2", "", """\
def fold(graph):
    for node in graph.nodes:
        arrays = [graph.constant(value) for value in node.uses]
        if arrays and node.op not in RANDOM and all(array is not None for array in arrays):
            new = {v.name: np.asarray(a) for v, a in zip(node.outputs, evaluate(node, graph.constants, graph.opsets))}
            rest = tuple(other for other in graph.nodes if other is not node)
            return fold(replace(graph, nodes=rest, constants={**graph.constants, **new}))
    return graph
"""),
    Right("orphans removed as well", "4.2", "return replace(graph, nodes=tuple(nodes), constants=constants)",
          "read = {v.name for n in nodes for v in n.uses} | graph.output_names | graph.input_names\n"
          "    constants = {name: array for name, array in constants.items() if name in read}\n"
          "    return replace(graph, nodes=tuple(nodes), constants=constants)"),
    Right("lists in float64", "4.3", "return scale, shift", "return [scale.astype(np.float64).tolist(), shift.tolist()]"),
    Right("from two points", "4.3", "", """\
def scale_and_shift(*parameters):
    at = [np.array([normalised(x, *map(float, one), parameters[4]) for one in zip(*parameters[:4])]) for x in (0.0, 1.0)]
    return at[1] - at[0], at[0]
"""),
    Right("power of −½", "4.3", "gamma / np.sqrt(var + epsilon)", "gamma * (var + epsilon) ** -0.5"),
    Right("einsum", "4.4", "weight * scale.reshape(-1, 1, 1, 1)", 'np.einsum("fcrs,f->fcrs", weight, scale)'),
    Right("filter by filter", "4.4", "weight * scale.reshape(-1, 1, 1, 1)", "[w * s for w, s in zip(weight, scale)]"),
    Right("transposed twice", "4.4", "weight * scale.reshape(-1, 1, 1, 1)", "(weight.T * scale).T"),
    Right("zeros for no bias", "4.4", "return folded, shift", "return folded, np.zeros(len(scale)) * scale + shift"),
    Right("at the place of the Conv", "4.5", "            nodes.remove(conv)\n            node = replace(conv, inputs=inputs, outputs=node.outputs[:1])\n",
          "            both = replace(conv, inputs=inputs, outputs=node.outputs[:1])\n            nodes[nodes.index(conv)] = both\n"
          "            makers[node.outputs[0].name] = both\n            continue\n"),
    Right("one pair a call", "4.5", "", """\
_all_pairs = fold_batch_norms


def fold_batch_norms(graph):
    lean = _all_pairs(graph)
    return graph if lean is graph else fold_batch_norms(replace(lean, name=graph.name + "'"))
"""),
    Right("NumPy's bool", "4.6", "return sum(kind.nbytes for kind in types) <= room", "return np.int64(sum(kind.nbytes for kind in types)) <= np.int64(room)"),
    Right("a dict", "4.6", "sum(graph.constants[name].nbytes for name in read)", "sum({value.name: graph.constants[value.name].nbytes for value in node.uses}.values())"),
    Right("a tuple", "4.7", "return graphs", "return tuple(reversed(graphs))"),
    Right("all but two", "4.7", "return graphs", "return graphs[:5] + graphs[6:10]"),
    Right("normal weights", "4.7", "make(name, draw.uniform(0.5, 1.5, (channels, channels, 3, 3)))", "make(name, draw.normal(size=(channels, channels, 3, 3)))"),
]  # fmt: skip
