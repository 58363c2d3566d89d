"""All actions of the screens in one registry: footer, help, palette and key map read it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from textual.binding import Binding


@dataclass(frozen=True)
class Action:
    """One thing that a person can do. Keys are letters, digits and arrows: they survive tmux and every terminal."""

    id: str
    keys: str
    action: str
    label: str
    description: str
    show: bool = False


ACTIONS: tuple[Action, ...] = (
    Action("screen_live", "1", "screen('live')", "live", "the live screen"),
    Action("screen_ab", "2", "screen('ab')", "A/B", "A against B, with a verdict"),
    Action("screen_sweep", "3", "screen('sweep')", "sweep", "a knob over its values"),
    Action("screen_bench", "4", "screen('bench')", "bench", "instruction throughputs of this chip"),
    Action("screen_sass", "5", "screen('sass')", "SASS", "the compiled code: units, roles, spills; A against B"),
    Action("screen_triage", "6", "screen('triage')", "triage", "the six steps, what each rules out, what to try next"),
    Action("screen_check", "7", "screen('check')", "check", "outputs: right, the same every time, the baseline's"),
    Action("screen_log", "8", "screen('log')", "log", "what workers and the compiler said, faults, notices"),
    Action("pause", "space", "pause", "pause", "pause: live, stop launching; replay, hold", show=True),
    Action("focus", "f", "focus_role", "focus", "next role in the graph and the waits", show=True),
    Action("metric", "m", "metric", "metric", "graph: step period or clean kernel time"),
    Action("zoom", "z", "zoom", "zoom", "timeline: 4, 2 or 1 steps"),
    Action("edit", "e", "edit", "edit", "another shape or setting, in fresh workers", show=True),
    Action("compare", "b", "compare", "compare", "compare the present setting with another", show=True),
    Action("promote", "x", "promote", "promote", "A/B: B's setting becomes the live plan"),
    Action("clear", "c", "clear", "clear", "A/B: end it and clear the screen; the live plan goes on"),
    Action("sweep", "s", "sweep", "sweep", "sweep a knob; the live plan goes on afterwards", show=True),
    Action(
        "run",
        "r",
        "run",
        "run",
        "what this screen does: A/B replicates; SASS, triage, check; else this chip's instructions",
    ),
    Action("next", "enter", "next_experiment", "next", "triage: run the experiment that is suggested"),
    Action("faster", "plus", "refresh_rate(2.0)", "more redraws", "redraw more often"),
    Action("slower", "minus", "refresh_rate(0.5)", "fewer redraws", "redraw less often"),
    Action("replay_back", "left", "seek(-5)", "back", "replay: 5 s back"),
    Action("replay_on", "right", "seek(5)", "on", "replay: 5 s on"),
    Action("replay_next", "n", "next_numbers", "next", "replay: on to the next numbers, past compiling"),
    Action("replay_slower", "comma", "speed(0.5)", "slower", "replay: half the speed"),
    Action("replay_faster", "full_stop", "speed(2.0)", "faster", "replay: twice the speed"),
    Action("theme", "t", "next_theme", "theme", "next colour theme"),
    Action("screenshot", "p", "screenshot", "picture", "save the screen as an SVG file"),
    Action("help", "question_mark", "help", "help", "this help", show=True),
    Action("palette", "ctrl+p", "command_palette", "palette", "command palette", show=False),
    Action("suspend", "ctrl+z", "suspend", "suspend", "back to the shell (fg returns); launches pause meanwhile"),
    Action("quit", "q", "leave", "quit", "leave: stop the engine, or detach and let it go on", show=True),
)

RESERVED = frozenset({"ctrl+b", "ctrl+a", "ctrl+s", "ctrl+j", "ctrl+m", "ctrl+h", "ctrl+i", "ctrl+c", "escape"})


class KeyMapError(ValueError):
    """The key map in the config can not be used; the text names the action or the key."""


def key_map(chosen: dict[str, str]) -> dict[str, str]:
    """Keys of every action, with the person's changes.

    Raises:
        KeyMapError: an unknown action id, a key that tmux or terminals eat, or one key for two actions.
    """
    keys = {action.id: action.keys for action in ACTIONS}
    for action_id, value in chosen.items():
        if action_id not in keys:
            raise KeyMapError(f"keys: no action '{action_id}'; there are: {', '.join(keys)}")
        if eaten := [k for k in value.split(",") if k.strip() in RESERVED]:
            raise KeyMapError(f"keys: {action_id} = {eaten[0]}: terminals or tmux eat this key; choose another")
        keys[action_id] = value
    taken: dict[str, str] = {}
    for action_id, value in keys.items():
        for key in (part.strip() for part in value.split(",")):
            if key in taken:
                raise KeyMapError(f"keys: '{key}' is used by {taken[key]} and {action_id}")
            taken[key] = action_id
    return keys


def bindings() -> Iterable[Binding]:
    """Textual bindings of the registry."""
    return [
        Binding(action.keys, action.action, action.label, show=action.show, id=action.id, tooltip=action.description)
        for action in ACTIONS
    ] + [Binding("ctrl+c", "leave", "quit", show=False, priority=True)]
