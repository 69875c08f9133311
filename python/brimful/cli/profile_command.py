"""`brimful profile` on the command line: its options, and which of its three targets is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from brimful import PlanError
from brimful.cli.options import Dtype, Eos, Format

_PROGRAM = "program"
_OUTPUTS = {"html", "trace", "jsonl", "json"}  # what every target can have
_DRAWN = {"steps", "step_ms"}  # what a loader drawn by the command has


class ProfileCommand(TyperCommand):
    """Takes everything behind the first "--" as a program with its arguments."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            args, ctx.meta[_PROGRAM] = args[:place], args[place + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "TARGET | -- PROGRAM ..."]


def profile(
    ctx: typer.Context,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="Token shards: a file, a folder or a glob; or module:function, which is called "
            "and returns a loader of any kind.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(metavar="N", help="Batches to draw.", min=2)] = 200,
    step_ms: Annotated[
        float | None,
        typer.Option(
            help="Simulate the accelerator: a step sleeps for so many milliseconds. Else batches "
            "are drawn as fast as they come.",
            min=0,
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report to look at.")
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace for Perfetto or Chrome.")
    ] = None,
    jsonl: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one JSON object a batch.")
    ] = None,
    seq_len: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens a row can hold; 4096.", min=1)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Rows of a batch; 8.", min=1)
    ] = None,
    packing: Annotated[
        str | None, typer.Option(help="How rows are packed; streaming. pad: a document a row.")
    ] = None,
    overlong: Annotated[
        str | None, typer.Option(help="Documents over --seq-len: split, truncate, drop or error.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="rows or varlen.")] = None,
    num_workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", help="Threads that make batches; 2.", min=0),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="Batches made ahead; 4.", min=1)
    ] = None,
    io: Annotated[str | None, typer.Option(help="How files are read: mmap or pread.")] = None,
    shuffle: Annotated[
        bool | None, typer.Option("--shuffle/--no-shuffle", help="Shuffle documents; on.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the order; 0.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Deliver batches there, and measure its starvation.")
    ] = None,
    format: Format = None,
    dtype: Dtype = None,
    eos: Eos = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print JSON instead of text; with a program as the last line of stdout.",
        ),
    ] = False,
) -> None:
    """Show what a training loop waits for, and what padding costs it.

    Draws batches from shards, or from a loader of any kind, or runs a program of yours as it is and
    watches its loaders:

      brimful profile shards/ --step-ms 80

      brimful profile train:make_loader --html report.html

      brimful profile -- python train.py --lr 3e-4

    The program keeps its output, its signals and its exit code; what brimful tells goes to stderr.
    With --json it is one line of stdout, behind all that the program wrote there: | tail -n 1.
    """
    program = ctx.meta.get(_PROGRAM)
    given = {
        name
        for name in ctx.params
        if name not in {"target"} and ctx.get_parameter_source(name).name == "COMMANDLINE"  # type: ignore[union-attr]
    }
    outputs = {"html": html, "trace": trace, "jsonl": jsonl}
    if program is not None:
        from brimful.cli.profile_program import run_program

        if target is not None or not program:
            raise PlanError("give either a TARGET or, behind --, a program with its arguments")
        _refuse(given - _OUTPUTS, "a program has its own loop and loaders")
        raise typer.Exit(run_program(program, outputs=outputs, json=json))
    if target is None:
        raise PlanError(
            "nothing to profile: give shards, module:function, or -- and a program, as in "
            "brimful profile -- python train.py"
        )
    from brimful.cli.profile_target import is_function, run_target

    settings = {
        name: value
        for name, value in ctx.params.items()
        if name in given and name not in _OUTPUTS | _DRAWN
    }
    if is_function(target):
        _refuse(set(settings), f"{target} makes its own loader")
    raise typer.Exit(
        run_target(
            target,
            settings=settings,
            steps=steps,
            step_seconds=None if step_ms is None else step_ms / 1e3,
            outputs=outputs,
            json=json,
        )
    )


def _refuse(names: set[str], why: str) -> None:
    if names:
        flags = ", ".join(sorted(_flag(name) for name in names))
        raise PlanError(f"{flags} cannot be given here: {why}")


def _flag(name: str) -> str:
    return "--workers" if name == "num_workers" else f"--{name.replace('_', '-')}"
