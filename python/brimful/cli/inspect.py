"""`brimful inspect`: what token shards hold, from their headers and indices; with --verify, from
every byte.
"""

from __future__ import annotations

import json as jsonlib
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

import brimful as bf
from brimful.cli.histogram import length_histogram, length_summary, print_histogram
from brimful.cli.source import Source
from brimful.cli.text import count, make_console, print_path
from brimful.manifest import find as find_manifest
from brimful.shard_layout import MANIFEST, Manifest
from brimful.verify import verify as find_damage

FIRST_DOCUMENTS = 3
FIRST_TOKENS = 8
TITLE_WIDTH = 12


def describe(corpus: bf.Corpus) -> dict[str, Any]:
    """What the corpus holds, ready for JSON. Reads all lengths and the first few tokens."""
    lengths = corpus.lengths
    return {
        "documents": len(corpus),
        "tokens": corpus.num_tokens,
        "empty_documents": int((lengths == 0).sum()),
        "sources": [asdict(source) for source in corpus.info],
        "lengths": length_summary(lengths),
        "histogram": [asdict(bucket) for bucket in length_histogram(lengths)],
        "first_tokens": [
            corpus[i][:FIRST_TOKENS].tolist() for i in range(min(FIRST_DOCUMENTS, len(corpus)))
        ],
    }


def verify(manifest: Manifest | None, data: str) -> None:
    """Compares every byte with the checksums; FormatError names the first that differs."""
    if manifest is None:
        raise bf.FormatError(
            f"{data}: has no {MANIFEST}, so there are no checksums to verify against"
        )
    for damage in find_damage(manifest):
        raise bf.FormatError(f"{damage}; restore the file or write the shards again")


def run(
    source: Source,
    *,
    verify_checksums: bool,
    json: bool,
) -> None:
    """Prints what the source holds as text or JSON."""
    corpus = source.open()
    manifest = find_manifest(source.data) if Path(source.data).is_dir() else None
    if verify_checksums:
        verify(manifest, source.data)
    report = {
        "data": source.data,
        **describe(corpus),
        "manifest": None if manifest is None else manifest.to_json(),
        "verified": verify_checksums,
    }
    if json:
        print(jsonlib.dumps(report, indent=2))
    else:
        _print(make_console(), corpus, report)


def _print(console: Console, corpus: bf.Corpus, report: dict[str, Any]) -> None:
    empty = f" ({count(report['empty_documents'])} empty)" if report["empty_documents"] else ""
    _line(console, "data", report["data"])
    _line(console, "documents", count(report["documents"]) + empty)
    _line(console, "tokens", count(report["tokens"]))
    for source in corpus.info:
        _line(console, "source", source.name)
        _line(console, "", source.size())
        _line(console, "", f"{source.format}, {source.dtype}, boundaries from {source.boundaries}")
        if source.loss_masks != "none":
            _line(console, "", f"loss masks on {source.loss_masks} files")
    if report["manifest"] is not None:
        _print_manifest(console, report["manifest"])
    if report["verified"]:
        _line(console, "checksums", "all bytes are as they were written")
    for i, tokens in enumerate(report["first_tokens"]):
        dots = " ..." if corpus.lengths[i] > FIRST_TOKENS else ""
        _line(console, f"document {i}", " ".join(map(str, tokens)) + dots)
    if report["histogram"]:
        lengths = report["lengths"]
        marks = [
            f"{name} {count(lengths[name])}" for name in ("min", "p10", "p50", "p90", "p99", "max")
        ]
        _line(console, "lengths", ", ".join(marks))
        console.print()
        print_histogram(console, length_histogram(corpus.lengths))


def _print_manifest(console: Console, manifest: dict[str, Any]) -> None:
    _line(console, "written by", f"brimful {manifest['brimful']}")
    for title in ("tokenizer", "provenance"):
        for name, value in (manifest[title] or {}).items():
            for text in textwrap.wrap(f"{name}: {_summary(value)}", console.width - TITLE_WIDTH):
                _line(console, title, text)
                title = ""


def _summary(value: Any) -> str:
    """A value of the manifest for people: JSON has the whole of it."""
    if isinstance(value, list):
        return f"{count(len(value))} entries (--json shows them)"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_summary(item)}" for name, item in value.items())
    return "-" if value is None else str(value)


def _line(console: Console, title: str, text: str) -> None:
    print_path(console, f"{title:<{TITLE_WIDTH}}", text)
