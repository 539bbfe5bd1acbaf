"""Dead code: nodes that no graph output depends on, and constants that nothing reads (spec §6.1)."""

from __future__ import annotations

from dataclasses import replace

from labkit.graph import Graph


def eliminate_dead(graph: Graph) -> Graph:
    """Keep what the outputs depend on, walking backwards from them; what an inner graph captures is read too.

    The interface stays: an input that nothing reads is still an input, and keeps its default.
    """
    live = {value.name for value in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):  # a reader stands behind what it reads, so one walk is enough
        if any(value.name in live for value in node.results):
            live.update(value.name for value in node.uses)
            kept.append(node)
    live |= graph.input_names
    constants = {name: array for name, array in graph.constants.items() if name in live}
    if len(kept) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    return replace(graph, nodes=tuple(reversed(kept)), constants=constants)
