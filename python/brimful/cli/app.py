"""The commands of `brimful` and their options. Each command's work lives in a module of its own,
imported when it runs, so that `brimful --help` is instant and needs no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from brimful import BrimfulError, __version__
from brimful.cli.flags import in_flags
from brimful.cli.options import Data, Dtype, Eos, Format, Json, Overlong, SeqLen
from brimful.cli.profile_command import ProfileCommand, profile
from brimful.cli.source import Source
from brimful.cli.text import make_console

USAGE_ERROR = 2  # the exit code for whatever the user can mend


class _Commands(TyperGroup):
    """Shows what the user can mend as one line, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise  # the reader of our output has gone; typer ends the program quietly
        except (BrimfulError, OSError, ImportError) as error:
            if isinstance(error, ImportError) and (error.name or "").startswith("brimful"):
                raise  # a fault of ours, not a package to install
            command = self.commands.get(ctx.invoked_subcommand or "")
            options = [name for option in command.params for name in option.opts] if command else []
            line = in_flags(" ".join(str(error).split()), options)
            make_console(stderr=True).print(f"brimful: {line}", soft_wrap=True)
            raise typer.Exit(USAGE_ERROR) from None


app = typer.Typer(
    cls=_Commands,
    help="Fill every training batch to the brim with real tokens, and see when the loop waits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"brimful {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the shards in this folder (else: a temporary one, removed)."),
    ] = None,
) -> None:
    """Tokenize, pack, load beside torch and train, in under a minute."""
    from brimful.cli.demo import run

    run(out=out)


@app.command()
def prepare(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUTS...", help="Text, .jsonl or .parquet files or folders."),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the shards.")],
    tokenizer: Annotated[
        str, typer.Option(help='A tokenizer.json, an encoding such as o200k_base, or "bytes".')
    ],
    format: Annotated[
        str | None, typer.Option(help="text, jsonl or parquet, when names do not tell.")
    ] = None,
    field: Annotated[str, typer.Option(help="Field or column that holds the text.")] = "text",
    bos: Annotated[str | None, typer.Option(help="Token before each document: id or text.")] = None,
    eos: Annotated[str | None, typer.Option(help="Token after each document: id or text.")] = None,
    parse_special: Annotated[
        bool, typer.Option("--parse-special", help="Special tokens in texts become such tokens.")
    ] = False,
    dtype: Annotated[
        str | None, typer.Option(help="Integer type on disk; else the smallest that fits.")
    ] = None,
    errors: Annotated[str, typer.Option(help="Bad documents: error or skip.")] = "error",
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads that encode; else one a core.", min=1)
    ] = None,
) -> None:
    """Tokenize texts into shards."""
    from brimful.cli.prepare import run

    run(
        inputs,
        out=out,
        tokenizer=tokenizer,
        format=format,
        field=field,
        bos=bos,
        eos=eos,
        parse_special=parse_special,
        dtype=dtype,
        errors=errors,
        num_threads=threads,
    )


@app.command()
def inspect(
    data: Data,
    format: Format = None,
    dtype: Dtype = None,
    eos: Eos = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything and compare the checksums.")
    ] = False,
    json: Json = False,
) -> None:
    """Show what token shards hold."""
    from brimful.cli.inspect import run

    run(Source(data, format, dtype, eos), verify_checksums=verify, json=json)


@app.command()
def pack(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Token shards, a folder of save_to_disk, or lengths: a .txt, one a line, or a "
            ".npy. Each DATA is a source.",
        ),
    ],
    seq_len: SeqLen,
    overlong: Overlong = "split",
    strategy: Annotated[
        str, typer.Option(help="The strategy to report on in detail.")
    ] = "streaming",
    world_size: Annotated[
        int, typer.Option(metavar="N", help="Ranks that share a step.", min=1)
    ] = 8,
    batch_size: Annotated[
        int, typer.Option(metavar="N", help="Rows of a rank in a step.", min=1)
    ] = 8,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a .png, .svg, .pdf or .html.")
    ] = None,
    format: Format = None,
    dtype: Dtype = None,
    eos: Eos = None,
    json: Json = False,
) -> None:
    """Compare packing strategies and padding on your documents.

    A .npy is read as lengths, unless --format npy says that it holds tokens.
    """
    from brimful.cli.compare import Ranks
    from brimful.cli.pack import run

    run(
        [Source(path, format, dtype, eos) for path in data],
        seq_len=seq_len,
        overlong=overlong,
        strategy=strategy,
        ranks=Ranks(world_size, batch_size),
        plot=plot,
        json=json,
    )


@app.command()
def bench(
    data: Data,
    seq_len: SeqLen,
    batch_size: Annotated[int, typer.Option(metavar="N", help="Rows of a batch.", min=1)],
    seconds: Annotated[float, typer.Option(help="How long each loader runs.", min=0.1)] = 3.0,
    format: Format = None,
    dtype: Dtype = None,
    eos: Eos = None,
    json: Json = False,
) -> None:
    """Measure the loader next to torch's DataLoader on your shards.

    0, 1 and 2 threads; torch, with 0 and 2 workers, pads the same documents.
    """
    from brimful.cli.bench import run

    run(
        Source(data, format, dtype, eos),
        seq_len=seq_len,
        batch_size=batch_size,
        seconds=seconds,
        json=json,
    )


app.command(cls=ProfileCommand)(profile)


@app.command()
def verify(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA", help="Token shards: a file, a folder or a glob. Each DATA is a source."
        ),
    ],
    seq_len: SeqLen,
    batch_size: Annotated[int, typer.Option(metavar="N", help="Rows of a batch.", min=1)] = 4,
    world_size: Annotated[int, typer.Option(metavar="N", help="Ranks.", min=1)] = 2,
    accumulate: Annotated[
        int, typer.Option(metavar="N", help="Micro-batches of a step.", min=1)
    ] = 2,
    batches: Annotated[
        int,
        typer.Option(metavar="N", help="Batches of a rank in each run, at least 3 steps.", min=4),
    ] = 64,
    packing: Annotated[str, typer.Option(help="How rows are packed.")] = "streaming",
    overlong: Overlong = "split",
    layout: Annotated[str, typer.Option(help="rows or varlen.")] = "rows",
    weights: Annotated[
        str | None, typer.Option(metavar="A,B", help="Shares of several DATA, in tokens.")
    ] = None,
    shuffle: Annotated[bool, typer.Option(help="Shuffle the documents.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of the order.")] = 0,
    window: Annotated[
        int, typer.Option(metavar="N", help="Documents packed together.", min=1)
    ] = 16384,
    vocab_size: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens outside it are bad.", min=1)
    ] = None,
    format: Format = None,
    dtype: Dtype = None,
    eos: Eos = None,
    json: Json = False,
) -> None:
    """Prove on your data that a run may stop anywhere and go on exactly.

    Runs the loader, interrupts it, resumes it with other threads and ranks, and compares hashes of
    all batches, at the beginning of a run and around the end of its first epoch. Exit code 1 when
    anything differs.
    """
    from brimful.cli.trial import Split
    from brimful.cli.verify import run

    passed = run(
        [Source(path, format, dtype, eos) for path in data],
        weights=weights,
        given=Split(world_size, batch_size, accumulate),
        batches=batches,
        settings={
            "seq_len": seq_len,
            "packing": packing,
            "overlong": overlong,
            "layout": layout,
            "shuffle": shuffle,
            "seed": seed,
            "window": window,
            "vocab_size": vocab_size,
        },
        json=json,
    )
    if not passed:
        raise typer.Exit(1)
