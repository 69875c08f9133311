"""The command line. typer and rich are imported when it runs: the core needs numpy alone."""

import sys


def main() -> None:
    """Entry point of the console script; exit code 2 with one line for what the user can mend."""
    try:
        from brimful.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"typer", "rich"}:
            raise
        sys.stderr.write(
            f"brimful: the command line needs {error.name.split('.')[0]}, which is not installed; "
            "run: pip install 'brimful[prepare]'\n"
        )
        raise SystemExit(2) from None
    app(prog_name="brimful")
