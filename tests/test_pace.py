"""At a brisk pace the loop makes batches itself, beside the threads."""

import brimful as bf
from truth import corpus_of

CONSUMER = -1  # among the threads of records


def test_the_loop_makes_batches_but_plans_no_window_for_them():
    skipped = range(205, 400)  # begins within a window
    corpus = corpus_of([1024] * 4000)
    made = 0
    for _ in range(12):
        # One thread takes longer for such a batch than the loop, however many cores there are.
        loader = bf.DataLoader(
            corpus, 8, seq_len=1024, window=100, num_workers=1, depth=2, skip=[skipped]
        )
        for _ in loader:
            pass
        records = loader.records()
        made += sum(record.thread == CONSUMER for record in records)
        (behind,) = (record for record in records if record.step == skipped.stop)
        assert behind.thread != CONSUMER, "windows had to be planned to find it"
    assert made > 0
