"""The root command. Subcommands are imported when they are called, so that --version and --help are quick."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from fa4top import __version__

COMMANDS: dict[str, str] = {
    "top": "the live screens (what plain `fa4top` does)",
    "live": "the same numbers as text, or the log's records as JSON",
    "ab": "did this knob help? A verdict with a stated error rate",
    "bench": "instruction throughputs of this chip, each checked in SASS",
    "sweep": "one knob over its values, fresh workers for each",
    "check": "is the output right, the same every time, and the baseline's?",
    "triage": "the method's six steps: evidence, what is ruled out, what to try next; a report",
    "replay": "play a recorded session in the same screens",
    "export": "a session for other tools: Perfetto, Chrome, CSV, Parquet, Markdown, HTML",
    "sessions": "list live and recorded sessions",
    "attach": "go back to a live session",
    "doctor": "what this node has, what it lacks, and how to fix it",
    "knobs": "the settings of a target",
    "sass": "the compiled code of a setting or file: units, roles, spills; A against B; conditions",
    "fork-trace": "read a trace that flash-attention-fp4's own profiler recorded",
    "config": "the config file: where, what is in it, themes and keys",
}

EPILOG = """\b
Examples:
  fa4top                                     best target that is there, in the live screens
  fa4top --target sim --set p_split=1/2      a simulated GB300 with another hand-over
  fa4top --shape b1,s16384,h24,d128 --causal --dtype fp16
  fa4top live --seconds 20 --json > run.jsonl
  fa4top bench ex2 cvt                       these microbenchmarks only
  fa4top sweep p_split=1/4,1/2,3/4 --target builtin --set pv_mode=fp8
  fa4top replay run.jsonl

\b
Exit codes: 0 ok, 1 output check failed or not as expected, 2 usage, 3 nothing to run on, 4 fault.
"""


class LazyGroup(click.Group):
    """Knows its commands by name; loads one when it is used. Without a name it means `top`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a first use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command's file."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"fa4top.cli.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options in front of no command belong to `top`."""
        root_only = {"--help", "-h", "--version"}
        if not args or (args[0].startswith("-") and args[0] not in root_only):
            args = ["top", *args]
        return super().parse_args(ctx, args)


@click.command(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fa4top")
def root() -> None:
    """fa4top: watch FlashAttention-4's pipeline from inside, live."""


def main(argv: list[str] | None = None) -> Any:
    """Entry point of the console script."""
    try:
        return root.main(args=argv, prog_name="fa4top")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; that is no error of ours
        sys.exit(0)
