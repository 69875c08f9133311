"""The warning that a rule took tokens, said once a loader."""

from __future__ import annotations

import warnings

from brimful import _core
from brimful.config import LoaderConfig
from brimful.wording import counted


class LossWarning:
    """Looks at what a loader counted, and says so once where tokens were dropped."""

    def __init__(self, ledger: _core.Ledger, config: LoaderConfig) -> None:
        self._ledger = ledger
        self._config = config
        self._said = False

    def warn_once(self) -> None:
        """At the end of an epoch: the counts are in `stats()`."""
        tally = self._ledger.counts().rank
        if self._said or not tally.dropped_tokens:
            return
        self._said = True
        config = self._config
        warnings.warn(
            f"{tally.dropped_tokens:,} tokens were dropped so far on this rank "
            f"({counted(tally.dropped_documents, 'document')} dropped, "
            f"{tally.truncated_documents:,} truncated; overlong={config.overlong!r}, "
            f"seq_len={config.seq_len}, drop_last={config.drop_last}). "
            f"stats() counts them",
            stacklevel=3,
        )
