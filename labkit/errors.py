"""Errors that teach: each message says which axis or node, which numbers, and what would be right."""

from __future__ import annotations


class LabError(Exception):
    """Anything the user can put right. The message is one line and needs no traceback to be understood."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints instead of a traceback: the sentence, for the fault lies in the cell, not in here."""
        return [f"{type(self).__name__}: {self}"]


class GraphError(LabError):
    """A graph or a model file that is not valid: a cycle, a missing value, a type that does not fit."""


class SramOverflow(LabError):
    """A working set that does not fit the on-chip memory; the message lists what is resident."""


class NotConverged(LabError):
    """A pipeline that found no fixed point; the message names the restless pass."""


class NotEquivalent(LabError):
    """Two graphs that compute different outputs; the message names the output, the input drawn and both values."""
