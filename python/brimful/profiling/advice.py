"""The words of a finding: the measurement behind it, and what to change, by who makes batches."""

from __future__ import annotations

from brimful.profiling.figures import Profile
from brimful.profiling.losses import MOST_MAKERS, Pace, depth_needed, makers_needed
from brimful.wording import brief, counted, duration, percent


def figure_for(cause: str, profile: Profile, means: Pace) -> str:
    """The measurement behind a finding."""
    return _FIGURES[cause](profile, means)


def advice_for(cause: str, profile: Profile, means: Pace) -> str:
    """What to change about it."""
    return _ADVICE[cause](profile, means)


def _makers(profile: Profile) -> str:
    workers = profile.facts.workers
    if not workers:
        return "the loop itself"
    return counted(workers, "thread" if profile.facts.kind == "brimful" else "worker")


def _pace(profile: Profile, means: Pace) -> str:
    """How batches are made beside how they are used."""
    step = f"a step uses one in {duration(means.step)}"
    if means.load is None:
        return f"What making a batch costs was not measured; {step}"
    share = _collate_share(profile, means)
    collate = f" ({100 * share:.0f} % of it in the collate function)" if _mostly(share) else ""
    text = f"A batch takes {duration(means.load)} to make{collate}, by {_makers(profile)}"
    if means.workers > 1:
        text += f" on {_cores(means)}: one in {duration(means.every)}"
    return f"{text}; {step}"


def _cores(means: Pace) -> str:
    return counted(means.cores, "core")


def _collate_share(profile: Profile, means: Pace) -> float:
    """Of the time to make a batch, that in the collate function; 0 where it was not measured."""
    stats = profile.stats
    if not stats.collate_seconds or not stats.loaded_batches or not means.load:
        return 0.0
    return min(stats.collate_seconds / stats.loaded_batches / means.load, 1.0)


def _mostly(share: float) -> bool:
    return share >= 0.5


def _storage_figure(profile: Profile, means: Pace) -> str:
    stats = profile.stats
    text = f"{_pace(profile, means)}. "
    if means.load:
        share = (means.blocked or 0) / means.load
        text += f"{100 * share:.0f} % of making it is waiting, not working"
    if stats.read_bytes:
        text += f": {brief(stats.read_bytes)}B came from storage"
    return text + "."


def _threads_figure(profile: Profile, means: Pace) -> str:
    text = _pace(profile, means)
    return f"{text}." if means.workers > 1 else f"{text}. There are {_cores(means)}."


def _fill_figure(profile: Profile, means: Pace) -> str:
    text = f"{_pace(profile, means)}."
    if means.load is None or not means.keeps_cores_busy:
        return text
    each = duration(means.work / means.cores)
    return f"{text} One on every core ({means.cores:,}) makes one in {each} at best."


def _depth_figure(profile: Profile, means: Pace) -> str:
    depth = profile.facts.depth
    kept = "" if depth is None else f" {counted(depth, 'batch', 'batches')} may be ready ahead."
    slowest = max((batch.load or 0.0 for batch in profile.batches), default=0.0)
    fast = ", which is fast enough on average" if means.load and means.every <= means.step else ""
    return f"{_pace(profile, means)}{fast}; the slowest took {duration(slowest)}.{kept}"


def _copy_figure(profile: Profile, means: Pace) -> str:
    device = profile.stats.starvation
    size = profile.stats.num_bytes / max(profile.stats.batches, 1)
    if device is not None and device.batches:
        each = duration(device.copy_seconds / device.batches)
        return f"The device waited {each} a batch for copies of {brief(size)}B."
    return (
        f"Batches that are ready take time too until the loop has them: a batch waits "
        f"{duration(means.wait)} on average; one has {brief(size)}B."
    )


def _consumer_figure(profile: Profile, means: Pace) -> str:
    stats = profile.stats
    device = stats.starvation
    ready = stats.queue_depth
    text = f"The loop spends {duration(means.step)} on a batch and waits {duration(means.wait)}"
    if ready is not None:
        text += f"; {ready:.1f} batches are ready on average when it asks"
    if device is not None and device.batches and device.handoff_seconds:
        each = duration(device.handoff_seconds / device.batches)
        text += f". The device waited {each} a batch for the host, with the batch there"
    return text + "."


def _padding_figure(profile: Profile, means: Pace) -> str:
    stats = profile.stats
    slots, tokens = stats.slots or 0, stats.tokens or 0
    return (
        f"{percent(stats.utilization)} of the slots hold tokens: {brief(slots - tokens)} of "
        f"{brief(slots)} are padding, and steps spend the same time on them."
    )


def _first_batch_figure(profile: Profile, means: Pace) -> str:
    stats = profile.stats
    each = duration(stats.first_batch_seconds / max(stats.first_batches, 1))
    passes = counted(stats.first_batches, "pass", "passes")
    end = f"; to end them took {duration(stats.end_seconds)}" if stats.end_seconds else ""
    return f"From iter() to the first batch it takes {each}, in {passes}{end}."


def _storage_advice(profile: Profile, means: Pace) -> str:
    text = _more_makers(profile, means, "where the storage serves as many at a time")
    if profile.facts.kind == "brimful":
        io = 'io="pread" serves network file systems better; '
        if profile.facts.settings.get("io") == "pread":
            io = ""
        return f'{text}; {io}shuffle="block" reads in runs; a copy on a local disk reads fastest.'
    if _mostly(_collate_share(profile, means)):
        return f"{text}; or let the collate function (collate_fn) wait for nothing."
    return (
        f"{text}; keep the files on a local disk; or turn them into shards of tokens once "
        "(brimful prepare), which are read in a piece."
    )


def _fill_advice(profile: Profile, means: Pace) -> str:
    more = ""
    # Where they wait as well, the finding about storage says how many.
    if means.load is not None and means.only_works and makers_needed(means) > means.workers:
        more = f" {_more_makers(profile, means, '')}."
    if profile.facts.kind == "brimful":
        # Said only where there is a device that batches do not go to yet.
        elsewhere = _on_cuda(profile) and not _to_cuda(profile)
        cuda = ' device="cuda" makes them on the device instead;' if elsewhere else ""
        return f"Ask for fewer columns (fields=);{cuda} give the process more cores.{more}"
    if _mostly(_collate_share(profile, means)):
        return (
            "Vectorize the collate function (collate_fn), or do its work once, before "
            f"training.{more}"
        )
    return (
        "Take work out of it: tokenize once, before training (brimful prepare), and collate less; "
        f"brimful.DataLoader fills batches of token ids in native threads.{more}"
    )


def _threads_advice(profile: Profile, means: Pace) -> str:
    text = _more_makers(profile, means, "")
    if _mostly(_collate_share(profile, means)):
        return f"{text}; or vectorize the collate function (collate_fn)."
    return f"{text}."


def _more_makers(profile: Profile, means: Pace, where: str) -> str:
    """How many, and what so many give: what is advised has to be possible."""
    if profile.facts.kind == "iterable" and not means.workers:
        return (
            "Make batches ahead, beside the loop (a torch DataLoader with num_workers does so for "
            "an IterableDataset)"
        )
    needed = makers_needed(means)
    where = f", {where}" if where else ""
    if needed <= means.workers:
        return f"More workers (num_workers) may help{where}"
    each = duration(means.every_with(needed))
    if means.every_with(needed) <= means.step:
        gives = f"makes one in {each}, which is in time"
    elif needed == MOST_MAKERS and not means.keeps_cores_busy:
        return f"More workers (num_workers) help, though even {needed} make one in {each}{where}"
    else:
        gives = f"makes one in {each}, which is not in time yet"
    return f"num_workers={needed} (it is {means.workers}) {gives}{where}"


def _depth_advice(profile: Profile, means: Pace) -> str:
    needed, depth = depth_needed(profile, means), profile.facts.depth
    if profile.facts.kind == "brimful":
        setting = "depth"
    elif profile.facts.kind == "torch":
        setting = "prefetch_factor x num_workers"
    else:
        return "Keep more batches ready ahead."
    if needed is None or needed <= (depth or 0):
        return f"Raise {setting}."
    return f"Raise {setting} to {needed}: the longest burst is then not noticed."


def _on_cuda(profile: Profile) -> bool:
    """Whether the profile knows of a device: one that was measured, or that batches go to."""
    device = profile.stats.starvation
    measured = device is not None and device.batches > 0
    return measured or _to_cuda(profile)


def _to_cuda(profile: Profile) -> bool:
    return str(profile.facts.settings.get("device")).startswith("cuda")


def _copy_advice(profile: Profile, means: Pace) -> str:
    if not _on_cuda(profile):
        if profile.facts.kind == "brimful":
            return "It is paid once a batch: larger batches, or fewer columns (fields=), cost less."
        return (
            "Workers send each batch to the loop, column by column: fewer bytes (int32, no dense "
            "masks) and fewer columns cost less, and threads in place of processes, as "
            "brimful.DataLoader has them, send nothing."
        )
    if profile.facts.kind == "brimful":
        return "Ask for fewer columns (fields=), and for no dense masks."
    return (
        "Copy less (masks and positions can be made on the device), from pinned memory "
        "(pin_memory=True) with non_blocking=True."
    )


def _consumer_advice(profile: Profile, means: Pace) -> str:
    device = profile.stats.starvation
    if device is not None and device.batches and device.handoff_seconds > 0:
        return (
            "Let the host run ahead of the device: no .item() or print of tensors in every step, "
            "and less work of Python beside it."
        )
    return "No loader makes this part faster: it is the step itself, the model and its kernels."


def _padding_advice(profile: Profile, means: Pace) -> str:
    if profile.facts.kind != "brimful":
        return (
            "Pack documents instead of padding them: brimful.DataLoader(dataset, seq_len=...) "
            "delivers the same tokens in fuller batches, and keeps documents apart."
        )
    packing = profile.facts.settings.get("packing")
    if packing in ("pad", "bucket"):
        return f'packing="best_fit_decreasing" fills rows with several documents ({packing!r} now).'
    return (
        'packing="best_fit_decreasing" with a larger window= fills bins best; documents that are '
        'longer than seq_len leave less with overlong="split".'
    )


def _first_batch_advice(profile: Profile, means: Pace) -> str:
    again = profile.stats.first_batches > 1
    if again and profile.facts.kind == "torch" and profile.facts.workers:
        return "It is paid once a pass: persistent_workers=True starts workers only once."
    return "It is paid once a pass, so that longer runs lose a smaller share to it."


_FIGURES = {
    "storage": _storage_figure,
    "fill": _fill_figure,
    "threads": _threads_figure,
    "depth": _depth_figure,
    "copy": _copy_figure,
    "consumer": _consumer_figure,
    "padding": _padding_figure,
    "first batch": _first_batch_figure,
}
_ADVICE = {
    "storage": _storage_advice,
    "fill": _fill_advice,
    "threads": _threads_advice,
    "depth": _depth_advice,
    "copy": _copy_advice,
    "consumer": _consumer_advice,
    "padding": _padding_advice,
    "first batch": _first_batch_advice,
}
