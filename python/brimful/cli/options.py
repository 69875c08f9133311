"""Options that several commands have, with the words of their help."""

from __future__ import annotations

from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Token shards: a file, a folder or a glob.")
]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of the shards, when their names do not tell.")
]
Dtype = Annotated[
    str | None, typer.Option(help="Integer type of a headerless .bin: uint16, uint32 ...")
]
Eos = Annotated[int | None, typer.Option(help="Token that ends a document where no index does.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SeqLen = Annotated[int, typer.Option(metavar="N", help="Tokens a row can hold.", min=1)]
Overlong = Annotated[
    str, typer.Option(help="Documents over --seq-len: split, truncate, drop or error.")
]
