"""`python -m brimful.cli`: the same as the console script `brimful`."""

from brimful.cli import main

main()
