"""What all live views share: controls by name, a state in text, errors as sentences, and the size of the screen."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import ipywidgets
import traitlets
from traitlets import HasTraits

from labkit.errors import LabError
from labkit.explore import screen
from labkit.explore.turns import in_turn

Self = TypeVar("Self", bound="View")


class View(ipywidgets.VBox):  # type: ignore[misc]
    """Controls over pictures. ``set(tile=64)`` moves controls from code as a hand would; ``text`` is what it shows.

    A subclass says in ``refresh`` what a change of a control, or of what it ``follows``, leads to. ``follows`` are
    pairs of an object and one of its traits: (panel state, "hardware").
    """

    text = ""

    def __init__(
        self,
        controls: Mapping[str, Any],
        pictures: Sequence[Any],
        follows: Iterable[tuple[HasTraits, str]] = (),
        **options: Any,
    ) -> None:
        self.controls = dict(controls)
        rows = [ipywidgets.HBox(list(self.controls.values()), layout=wrapping())] if self.controls else []
        super().__init__([*rows, *pictures, screen.Frame()], **options)
        self.add_class(f"labkit-{type(self).__name__}")
        screen.follow(self)
        self._follows = [*((control, "value") for control in self.controls.values()), *follows]
        for source, trait in self._follows:
            source.observe(self.refresh, trait)

    def refresh(self, _change: object = None) -> None:
        """Show the present state; whatever goes wrong becomes a sentence in the view."""
        raise NotImplementedError

    @in_turn
    def set(self: Self, **values: Any) -> Self:
        """Move controls by name. LabError for a name that is none, and for a value that a control cannot have."""
        for name, value in values.items():
            if name not in self.controls:
                raise LabError(f"no control {name!r}; there are: {', '.join(self.controls)}")
            try:
                self.controls[name].value = value
            except (traitlets.TraitError, ValueError, TypeError):
                raise LabError(f"control {name} cannot be {value!r:.40}") from None
        return self

    @in_turn
    def close(self) -> None:
        """End the view: it follows nothing any more."""
        while self._follows:
            source, trait = self._follows.pop()
            source.unobserve(self.refresh, trait)
        super().close()

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The live view, and its state in text for saved notebooks, nbval and readers without a browser."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": self.text}


def explain(error: Exception) -> str:
    """An error as a sentence; labkit's own need no class in front."""
    reason = str(error) if isinstance(error, LabError) else f"{type(error).__name__}: {error}"
    return f"Cannot show this: {reason}"


# ---- controls, all in one style


def wrapping() -> Any:
    """Controls side by side, in as many rows as the window needs."""
    return ipywidgets.Layout(flex_flow="row wrap", grid_gap="0 16px")


def slider(label: str, value: int, low: int, high: int, width: str = "268px") -> Any:
    """Whole numbers; the number beside it can be typed over."""
    return ipywidgets.IntSlider(value=value, min=low, max=high, description=label, **_style(width))


def stops(label: str, options: Iterable[Any], value: Any, width: str = "268px") -> Any:
    """A slider over some (label, value) pairs."""
    return ipywidgets.SelectionSlider(options=list(options), value=value, description=label, **_style(width))


def choice(label: str, options: Iterable[Any], value: Any, width: str = "200px") -> Any:
    """One of some words, or of (label, value) pairs."""
    return ipywidgets.Dropdown(options=list(options), value=value, description=label, **_style(width))


def field(label: str, value: str, width: str = "268px") -> Any:
    """Text, read when it is left or Enter is pressed."""
    return ipywidgets.Text(value=value, description=label, continuous_update=False, **_style(width))


def numbers(text: str, names: Sequence[str]) -> tuple[int, ...]:
    """The whole numbers of a field, such as 128,128,64, one for each name; LabError for anything else.

    >>> numbers("1024 × 512 x 64", "mnk"), numbers("8", "mnk")
    ((1024, 512, 64), (8, 8, 8))
    """
    words = text.replace("×", ",").replace("x", ",").split(",")
    try:
        found = tuple(int(word) for word in words)
    except ValueError:
        raise LabError(f"{text!r:.40}: write {len(names)} whole numbers, {','.join(names)}") from None
    if len(found) == 1:
        return found * len(names)
    if len(found) != len(names):
        raise LabError(f"{text!r:.40}: {len(found)} numbers; write one for each of {','.join(names)}, or one for all")
    return found


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of words as HTML: the first is the head, the first column stands left, numbers right.

    >>> table([["pass"], ["<b>"]]).count("&lt;b&gt;")
    1
    """
    head, *body = ("<tr>" + "".join(_cell(*numbered) for numbered in enumerate(row)) + "</tr>" for row in rows)
    return f'<table style="font-size:14px"><thead>{head}</thead><tbody>{"".join(body)}</tbody></table>'


def _cell(column: int, text: str) -> str:
    style = f"padding:1px 12px;line-height:1.4;white-space:nowrap;text-align:{'right' if column else 'left'}"
    return f'<td style="{style}">{html.escape(text)}</td>'


def _style(width: str) -> dict[str, Any]:
    return {"style": {"description_width": "initial"}, "layout": ipywidgets.Layout(width=width)}
