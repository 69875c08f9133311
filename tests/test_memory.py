"""Memory that the loader asks for: the ring and little else, whatever the threads and epochs."""

from programs import check_quiet, run

MEASURE = """
def anonymous():
    '''MiB that belong to nothing but this process.'''
    for line in open("/proc/self/smaps_rollup"):
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024

def epochs(l, count):
    for _ in range(count):
        for batch in l:
            pass
"""


def test_c89_memory_is_the_ring_and_little_else_for_any_number_of_threads(tmp_path):
    done = run(
        MEASURE
        + f"""
path = {str(tmp_path / "tokens.npy")!r}
np.lib.format.open_memmap(path, "w+", np.uint16, (120_000, 100)).flush()
corpus = bf.open(path)
used = {{}}
for num_workers in (1, 16):
    before = anonymous()
    l = bf.DataLoader(corpus, batch_size=4, seq_len=1024, num_workers=num_workers, depth=16,
                      shuffle=True)
    epochs(l, 1)
    iterator = iter(l)
    next(iterator)
    ring = 17 * 3 * 4 * 1024 * 8 / 2**20
    used[num_workers] = anonymous() - before
    assert used[num_workers] < ring + 32, used
    del iterator, l
assert used[16] - used[1] < 32, used
""",
        deadline=120,
    )
    check_quiet(done)


def test_c89_sixteen_threads_keep_no_more_plans_than_one():
    """Whichever thread plans a window, what that took is there for the next one."""
    used = []
    for num_workers in (1, 16):
        done = run(
            MEASURE
            + f"""
tokens = np.zeros(4096, np.uint16)
lengths = np.random.default_rng(1).lognormal(5, 1, 150_000).astype(int)
corpus = bf.open([tokens[:n] for n in lengths])
before = anonymous()
l = bf.DataLoader(corpus, batch_size=8, seq_len=4096, num_workers={num_workers}, shuffle=True,
                  fields=["input_ids"])
epochs(l, 3)
print(anonymous() - before)
""",
            deadline=120,
        )
        assert done.stderr == ""
        used.append(float(done.stdout))
    assert used[1] - used[0] < 10, used


def test_c89_memory_does_not_grow_with_epochs():
    done = run(
        MEASURE
        + """
for num_workers in (0, 3):
    l = loader(num_workers=num_workers, packing="best_fit_decreasing", shuffle=True, window=500)
    epochs(l, 2)
    before = anonymous()
    epochs(l, 6)
    for _ in range(20):  # left early
        next(iter(l))
    assert anonymous() < 1.05 * before + 2, (before, anonymous())
""",
        deadline=120,
    )
    check_quiet(done)


def test_c89_an_index_of_many_documents_costs_no_memory_of_its_own(tmp_path):
    """10 million documents of an index on disk; both files have holes instead of bytes."""
    done = run(
        MEASURE
        + f"""
path = {str(tmp_path / "tokens.npy")!r}
with open(path, "wb") as file:
    header = {{"descr": "<u2", "fortran_order": False, "shape": (10_000_000, 8)}}
    np.lib.format.write_array_header_1_0(file, header)
    file.truncate(file.tell() + 10_000_000 * 16)
before = anonymous()
for num_workers in (1, 16):
    l = bf.DataLoader(bf.open(path), seq_len=256, batch_size=8, shuffle=True,
                      num_workers=num_workers)
    iterator = iter(l)
    for _ in range(50):
        next(iterator)
    assert anonymous() - before < 32, (num_workers, anonymous() - before)
    del iterator, l
""",
        deadline=120,
    )
    check_quiet(done)
