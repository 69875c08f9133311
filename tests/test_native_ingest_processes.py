"""Temporary shards and processes: killed, forked and many of them."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from programs import check_quiet, run, source

DATASET = """
class Items:
    def __len__(self):
        return 300

    def __getitem__(self, index):
        return [index * 100 + t for t in range(1 + index % 20)]

def once(**how):
    return bf.DataLoader(Items(), seq_len=32, ingest="once", **how)

def folders():
    return sorted(os.listdir(os.path.join(os.environ["TMPDIR"], f"brimful-{os.getuid()}")))
"""


@pytest.fixture
def where(tmp_path):
    """The environment of a program whose temporary files lie in a folder of their own."""
    return {**os.environ, "TMPDIR": str(tmp_path)}


def left(where):
    folder = os.path.join(where["TMPDIR"], f"brimful-{os.getuid()}")
    return os.listdir(folder) if os.path.isdir(folder) else []


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("raise SystemExit(4)", 4),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
        ("1 / 0", 1),
    ],
)
def test_a_program_that_ends_leaves_nothing(where, end, code):
    done = run(
        DATASET + f"loader = once()\niterator = iter(loader)\nnext(iterator)\n{end}\n", env=where
    )
    assert done.returncode == code, done.stderr
    assert left(where) == []


@pytest.mark.parametrize("moment", ["loaded", "reading"])
def test_what_a_killed_program_left_goes_with_the_next_reading(where, moment):
    reading = """
class Slow(Items):
    def __getitem__(self, index):
        if index == 270:
            print("ready", flush=True)
            time.sleep(60)
        return super().__getitem__(index)
bf.DataLoader(Slow(), seq_len=32, ingest="once")
"""
    loaded = """
loader = once()
print("ready", flush=True)
time.sleep(60)
"""
    program = source(DATASET + (reading if moment == "reading" else loaded))
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=where, text=True
    )
    assert child.stdout.readline() == "ready\n"
    (held,) = left(where)
    check_quiet(run(DATASET + f"once(); assert folders() == [{held!r}], folders()", env=where))
    child.kill()
    child.wait()
    child.stdout.close()
    assert left(where) == [held]
    check_quiet(
        run(DATASET + f"loader = once(); assert {held!r} not in folders(), folders()", env=where)
    )
    assert left(where) == []


def test_forked_children_read_and_remove_nothing(where):
    done = run(
        DATASET
        + """
l = once()
held = folders()
wanted = [int(b["input_ids"].sum()) for b in l]
for how in ("os._exit(0)", "sys.exit(0)", "del l", "l.corpus = None; del l"):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            found = [int(b["input_ids"].sum()) for b in bf.DataLoader(l.corpus, seq_len=32)]
            assert found == wanted
            own = once()
            assert len(folders()) == 2
            del own
            exec(how)
        finally:
            code = 1 if sys.exc_info()[0] not in (None, SystemExit) else 0
            assert folders() == held
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, how
    assert folders() == held
assert [int(b["input_ids"].sum()) for b in l]
""",
        env=where,
    )
    check_quiet(done)
    assert left(where) == []


def test_a_child_that_ends_as_programs_do_leaves_its_parents_shards(where):
    done = run(
        DATASET
        + """
import multiprocessing
l = once()
held = folders()
for method in ("fork", "spawn"):
    child = multiprocessing.get_context(method).Process(target=len, args=([],))
    child.start()
    child.join()
    assert child.exitcode == 0
child = os.fork()
if child == 0:
    sys.exit(0)  # runs what is registered for the end of the interpreter
assert os.waitpid(child, 0)[1] == 0
assert folders() == held
assert sum(1 for _ in l)
""",
        env=where,
    )
    check_quiet(done)
    assert left(where) == []


def test_shards_of_a_killed_program_stay_while_its_child_reads_them(where):
    program = source(
        DATASET
        + """
l = once()
if os.fork() == 0:
    sys.stdin.readline()
    print(sum(int(b["input_ids"].sum()) for b in bf.DataLoader(l.corpus, seq_len=32)), flush=True)
    os._exit(0)
print("ready", flush=True)
time.sleep(60)
"""
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=where, text=True,
    )  # fmt: skip
    assert parent.stdout.readline() == "ready\n"
    (held,) = left(where)
    parent.kill()
    parent.wait()
    check_quiet(run(DATASET + f"l = once(); assert {held!r} in folders(), folders()", env=where))
    parent.stdin.write("\n")
    parent.stdin.close()
    wanted = sum(i * 100 + t for i in range(300) for t in range(1 + i % 20))
    assert parent.stdout.readline() == f"{wanted}\n"
    parent.stdout.close()


def test_ranks_read_each_for_itself_and_share_one_stream(where):
    program = source(
        DATASET
        + """
import json
l = once(batch_size=2, shuffle=True, seed=3)
tokens = [int(t) for b in l for d, a, n in zip(b.documents, b.cu_seqlens_host, b.lengths)
          if d >= 0 for t in np.asarray(b["input_ids"]).reshape(-1)[a : a + n]]
print(json.dumps([len(l), tokens, l.state_dict()["fingerprint"]]))
"""
    )
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
            env={**where, "RANK": str(rank), "WORLD_SIZE": "3"},
        )
        for rank in range(3)
    ]  # fmt: skip
    told = [json.loads(rank.communicate(timeout=60)[0]) for rank in ranks]
    assert len({batches for batches, *_ in told}) == 1
    assert len({json.dumps(fingerprint) for *_, fingerprint in told}) == 1
    assert Counter(token for _, tokens, _ in told for token in tokens) == Counter(
        i * 100 + t for i in range(300) for t in range(1 + i % 20)
    )
    assert left(where) == []


def test_a_run_goes_on_in_another_process(where):
    begin = run(
        DATASET
        + """
import json
l = once(batch_size=2, shuffle=True, seed=3)
iterator = iter(l)
head = [int(next(iterator)["input_ids"].sum()) for _ in range(9)]
print(json.dumps([head, l.state_dict()]))
""",
        env=where,
    )
    head, state = json.loads(begin.stdout)
    rest = run(
        DATASET
        + f"""
import json
l = once(batch_size=2, shuffle=True, seed=3)
l.load_state_dict(json.loads({json.dumps(state)!r}))
tail = [int(b["input_ids"].sum()) for b in l]
whole = [int(b["input_ids"].sum()) for b in once(batch_size=2, shuffle=True, seed=3)]
assert {head} + tail == whole
""",
        env=where,
    )
    check_quiet(rest)


def test_the_extra_that_writing_needs_is_named(where):
    done = run(
        "sys.modules['xxhash'] = None\n"
        + DATASET
        + """
try:
    once()
except ModuleNotFoundError as error:
    assert "brimful[prepare]" in str(error), error
else:
    raise AssertionError
assert folders() == []
""",
        env=where,
    )
    check_quiet(done)
