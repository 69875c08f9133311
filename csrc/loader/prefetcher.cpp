#include "loader/prefetcher.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/home.hpp"
#include "loader/pace.hpp"
#include "loader/telemetry.hpp"
#include "loader/threads.hpp"

namespace brimful {

namespace {

using std::chrono::nanoseconds;

// Beyond these a number is a slip of the pen, better refused than tried.
constexpr std::int64_t kMaxWorkers = 1024;
constexpr std::int64_t kMaxDepth = 65536;

void check_range(const char* name, std::int64_t value, std::int64_t low,
                 std::optional<std::int64_t> high) {
  if (value >= low && (!high || value <= *high)) return;
  throw PlanError(std::string(name) + " is " + std::to_string(value) + ", expected " +
                  std::to_string(low) + (high ? " to " + std::to_string(*high) : " or more"));
}

PrefetchConfig checked(PrefetchConfig config) {
  check_range("num_workers", config.num_workers, 0, kMaxWorkers);
  check_range("depth", config.depth, 1, kMaxDepth);
  check_range("max_slots", config.max_slots.value_or(1), 1, std::nullopt);
  check_range("timeout in nanoseconds", config.timeout.count(), 0, std::nullopt);
  // Without workers nothing is made ahead but the batch that next() is about to return.
  if (config.num_workers == 0) config.depth = 1;
  return config;
}

// Cores that threads of this process may run on.
int usable_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

// At the end of a window the consumer finds nothing to do for a batch or two. Where steps are
// larger than windows it never does, and then workers must not rest.
constexpr std::int64_t kMostUnplanned = 16;

// Holds a flag that says someone is inside; a second one is refused.
class OneAtATime {
 public:
  explicit OneAtATime(std::atomic<bool>& inside) : inside_(inside) {
    if (inside_.exchange(true)) {
      throw Error(
          "this iterator is already being asked for a batch, by another thread or further "
          "up the call stack; give each thread its own iterator, or a lock");
    }
  }
  ~OneAtATime() { inside_ = false; }
  OneAtATime(const OneAtATime&) = delete;
  OneAtATime& operator=(const OneAtATime&) = delete;

 private:
  std::atomic<bool>& inside_;
};

// Does something at the end of a scope, however that is left.
template <class F>
class Finally {
 public:
  explicit Finally(F f) : f_(std::move(f)) {}
  ~Finally() { f_(); }
  Finally(const Finally&) = delete;
  Finally& operator=(const Finally&) = delete;

 private:
  F f_;
};

// The right, and the duty, to make batch `number`.
struct Ticket {
  std::int64_t number;
  BatchSpec spec;
  Clock::time_point claimed;
  Clock::duration planned;
};

// A batch to be made: where, which, and since when.
struct Task {
  Lease slot;
  std::optional<Ticket> ticket;
  Clock::time_point leased;
  double slot_asked = 0;  // by Producer::now()
  double slot_granted = 0;
};

}  // namespace

// Once the ring is closed no ticket is claimed any more: that is the one sign to stop, at the end,
// after an error and for close(). Of the locks only `claim_mutex` is held while another (the ring's
// or the sequencer's) is taken.
struct Prefetcher::Impl {
  Impl(std::shared_ptr<Producer> made_by, PrefetchConfig given)
      : producer(std::move(made_by)),
        config(checked(given)),
        ring(producer->slot_bytes(), config.depth, config.max_slots, config.memory,
             producer->slot_memory()),
        sequencer(config.depth),
        helps(config.num_workers > 0 && config.timeout == nanoseconds::zero() &&
              !producer->sends()),
        times(consumer() + 1),
        running(times.size()) {}
  ~Impl() { close(); }

  void start();
  void work(std::size_t thread);
  bool make_batch(std::size_t thread);
  bool take_task(std::size_t thread, Task& task);
  bool take_task_at_once(std::size_t thread, Task& task);
  std::optional<Ticket> claim(ThreadTimes& mine);
  void finish(std::size_t thread, Task& task);
  void prepare(ThreadTimes& mine);
  void end_stream(std::int64_t ticket, std::exception_ptr error);

  std::optional<Delivered> next(const std::function<void()>& on_idle);
  void wait_for_batch(const std::function<void()>& on_idle);
  void help();
  void make_room();
  std::string late_message(Clock::duration blocked) const;
  void close();
  PrefetchCounters counters() const;

  // Its place among the threads.
  std::size_t consumer() const { return static_cast<std::size_t>(config.num_workers); }
  bool forked() const { return home.left(); }
  void refuse_if_forked() const;

  const std::shared_ptr<Producer> producer;
  const PrefetchConfig config;
  const Home home;
  const Clock::time_point begin = Clock::now();
  Ring ring;
  Sequencer sequencer;
  Pace pace;
  const bool helps;  // whether the consumer makes batches beside workers, at a brisk pace

  std::mutex claim_mutex;                // held while a ticket is claimed
  std::atomic<std::int64_t> claimed{0};  // tickets; written under claim_mutex
  std::atomic<bool> planning{false};     // a claim is under way; likewise

  std::atomic<bool> in_next{false};
  std::atomic<std::int64_t> delivered{0};  // batches; also the consumer's ticket
  TimeSum stall;
  TimeSum first_batch;
  Clock::duration waited{0};   // for the batch that comes next; by the consumer
  std::int64_t unplanned = 0;  // batches in a row that it left to workers, for planning; likewise
  std::atomic<std::int64_t> queue_depths{0};
  std::vector<ThreadTimes> times;     // of the workers, and then of the consumer
  std::vector<RunningMeter> running;  // likewise; each used by its thread alone

  std::mutex join_mutex;  // guards `workers`
  std::vector<std::jthread> workers;
};

void Prefetcher::Impl::start() {
  const std::lock_guard lock(join_mutex);
  workers.reserve(static_cast<std::size_t>(config.num_workers));  // a started thread must be kept
  for (int i = 0; i < config.num_workers; ++i) {
    try {
      const auto thread = static_cast<std::size_t>(i);
      workers.push_back(
          start_thread("brimful-" + std::to_string(i), [this, thread] { work(thread); }));
    } catch (const std::system_error& error) {
      throw Error("worker thread " + std::to_string(i + 1) + " of " +
                  std::to_string(config.num_workers) + " cannot be started (" + error.what() +
                  "); lower num_workers");
    }
  }
}

void Prefetcher::Impl::work(std::size_t thread) {
  if (!reserve_thread_locals()) {
    end_stream(claimed, std::make_exception_ptr(std::bad_alloc()));
    return;
  }
  try {
    producer->enter_thread();
  } catch (...) {
    end_stream(claimed, std::current_exception());
    return;
  }
  // With the first one at least a worker has a core beside the consumer's.
  const bool rests = static_cast<int>(thread) >= std::max(1, usable_cores() - 1);
  while (make_batch(thread)) {
    prepare(times[thread]);
    if (rests) pace.wait_while_brisk(times[thread].backpressure);
  }
}

// The way of one batch, from slot to publication. False when there is none to make any more, or for
// the consumer beside workers none at once: it makes the next one that nobody has begun.
bool Prefetcher::Impl::make_batch(std::size_t thread) {
  const bool at_once = config.num_workers > 0 && thread == consumer();
  // Outside the try block: were the slot returned before the stream ends, another worker would
  // claim a ticket whose place in the sequencer is still that of the failed one.
  Task task;
  try {
    if (!(at_once ? take_task_at_once(thread, task) : take_task(thread, task))) return false;
    finish(thread, task);
    return true;
  } catch (...) {
    // Without a ticket, the first one that nobody has takes the error.
    end_stream(task.ticket ? task.ticket->number : claimed.load(), std::current_exception());
    return false;
  }
}

bool Prefetcher::Impl::take_task(std::size_t thread, Task& task) {
  if (config.num_workers > 0) producer->settle(/*waits=*/true);
  task.slot_asked = producer->now();
  task.slot = ring.lease(times[thread].backpressure);
  task.slot_granted = producer->now();
  if (!task.slot) return false;
  task.leased = Clock::now();
  running[thread].begin(task.leased);
  const std::lock_guard claiming(claim_mutex);
  task.ticket = claim(times[thread]);
  return task.ticket.has_value();
}

// Waits for no slot, no claim of another thread and no plan.
bool Prefetcher::Impl::take_task_at_once(std::size_t thread, Task& task) {
  const std::unique_lock claiming(claim_mutex, std::try_to_lock);
  if (!claiming) return false;
  if (!producer->at_hand()) {
    if (++unplanned % kMostUnplanned == 0) pace.forget();
    return false;
  }
  unplanned = 0;
  task.slot = ring.lease_at_once();
  if (!task.slot) return false;
  task.leased = Clock::now();
  running[thread].begin(task.leased);
  task.ticket = claim(times[thread]);
  return task.ticket.has_value();
}

void Prefetcher::Impl::finish(std::size_t thread, Task& task) {
  ThreadTimes& mine = times[thread];
  Ticket& ticket = *task.ticket;
  const Clock::time_point filling = Clock::now();
  auto [meta, sent] = producer->fill(ticket.spec, task.slot);
  const Clock::time_point done = Clock::now();
  const Clock::duration filled = done - filling - meta.read_time;
  mine.fill.add(filled);
  mine.read.add(meta.read_time);
  const Clock::duration work = ticket.planned + meta.read_time + filled;
  if (helps) pace.made(to_seconds(work), producer->reads_storage());
  const BatchTimes took{.plan = to_seconds(ticket.planned),
                        .read = to_seconds(meta.read_time),
                        .fill = to_seconds(filled),
                        .running = to_seconds(running[thread].end(done, work)),
                        .slot_asked = task.slot_asked,
                        .slot_granted = task.slot_granted,
                        .thread = thread == consumer() ? -1 : static_cast<std::int64_t>(thread),
                        .slot = reinterpret_cast<std::uintptr_t>(task.slot.get()),
                        .leased = place_of(task.leased),
                        .claimed = place_of(ticket.claimed),
                        .filled = place_of(done)};
  sequencer.publish(ticket.number, {std::move(task.slot), std::move(ticket.spec), std::move(meta),
                                    took, std::move(sent)});
}

// Between batches. A worker that is alone has no time for it, but when it would wait for a slot.
void Prefetcher::Impl::prepare(ThreadTimes& mine) {
  if (config.num_workers == 1 && !pace.brisk() && ring.has_room()) return;
  const Stopwatch watch(mine.plan);
  producer->prepare();
}

// Under claim_mutex. Nothing where there is no batch to make any more.
std::optional<Ticket> Prefetcher::Impl::claim(ThreadTimes& mine) {
  if (ring.closed()) return std::nullopt;
  const Clock::time_point planning_since = Clock::now();
  std::optional<BatchSpec> spec;
  std::exception_ptr error;
  planning = true;
  try {
    spec = producer->claim();
  } catch (...) {
    error = std::current_exception();
  }
  const Clock::duration planned = Clock::now() - planning_since;
  mine.plan.add(planned);
  planning = false;
  if (!spec) {
    end_stream(claimed, error);  // under the lock: nobody may ask the producer again
    return std::nullopt;
  }
  return Ticket{claimed++, std::move(*spec), planning_since, planned};
}

void Prefetcher::Impl::end_stream(std::int64_t ticket, std::exception_ptr error) {
  ring.close();
  pace.close();
  sequencer.end(ticket, std::move(error));
}

std::optional<Delivered> Prefetcher::Impl::next(const std::function<void()>& on_idle) {
  refuse_if_forked();
  const OneAtATime alone(in_next);
  const Clock::time_point entered = Clock::now();
  const std::int64_t ready = sequencer.ready();
  if (!sequencer.settled()) wait_for_batch(on_idle);
  std::optional<Delivered> batch = sequencer.take();
  if (!batch) return std::nullopt;
  batch->times.stall = to_seconds(std::exchange(waited, {}));
  batch->times.queue_depth = ready;
  batch->times.slots_in_use = ring.counters().in_use;
  queue_depths += ready;
  // Only now may a worker claim the ticket that shares the place just emptied.
  ring.hand_over(batch->slot);
  const Clock::time_point taken = Clock::now();
  batch->times.entered = place_of(entered);
  batch->times.taken = place_of(taken);
  batch->times.first = delivered++ == 0;
  if (batch->times.first) first_batch.add(taken - begin);
  return batch;
}

// Returns when the sequencer has a batch, the end or an error for the next ticket.
void Prefetcher::Impl::wait_for_batch(const std::function<void()>& on_idle) {
  const Clock::time_point since = Clock::now();
  // However it ends. The first batch has a counter of its own.
  const Finally count([&] {
    if (delivered == 0) return;
    const Clock::duration blocked = Clock::now() - since;
    stall.add(blocked);
    waited += blocked;
  });
  make_room();  // once: while this waits, free slots go to who makes batches, and nowhere else
  if (config.num_workers == 0) make_batch(consumer());
  const bool timed = config.timeout > nanoseconds::zero();
  while (true) {
    help();
    nanoseconds slice = kIdleSlice;
    if (timed) slice = std::min(slice, config.timeout - nanoseconds(Clock::now() - since));
    if (sequencer.settled() || sequencer.wait_for(slice)) return;
    const Clock::duration blocked = Clock::now() - since;
    if (timed && blocked >= config.timeout) throw LoaderTimeout(late_message(blocked));
    if (on_idle) on_idle();
  }
}

// At a brisk pace makes batches until the next one is there. For as long as a wait lasts, at most,
// for that one may be a worker's, and late.
void Prefetcher::Impl::help() {
  const Clock::time_point end = Clock::now() + kIdleSlice;
  while (pace.brisk() && !sequencer.settled() && Clock::now() < end) {
    if (!make_batch(consumer())) return;
  }
}

// Adds a slot where lease() would wait for the consumer, which is the calling thread. A batch that
// was sent to a device is no slot of the consumer's: workers wait until theirs was read. Without
// workers the ring grows meanwhile, and this waits only where it must not.
void Prefetcher::Impl::make_room() {
  if (producer->sends()) {
    if (config.num_workers > 0) return;
    const bool full = config.max_slots && ring.counters().slots >= *config.max_slots;
    producer->settle(/*waits=*/full && !ring.has_room());
  }
  ring.grow_if_all_held();
}

std::string Prefetcher::Impl::late_message(Clock::duration blocked) const {
  using Seconds = std::chrono::duration<double>;
  const std::int64_t number = delivered;
  std::ostringstream text;
  text << "batch " << number << " did not come within " << Seconds(blocked).count()
       << " s (timeout = " << Seconds(config.timeout).count() << " s). Late: ";
  if (number < claimed) {
    text << "filling (a worker is reading its tokens: is the storage slow?)";
  } else if (planning) {
    text << "planning (a worker is packing documents: a smaller window takes less time)";
  } else {
    text << "waiting for a slot (no worker has begun it: are the cores busy with other work?)";
  }
  text << ". The stream goes on: ask again, or raise timeout";
  return text.str();
}

void Prefetcher::Impl::close() {
  ring.close();  // first, or the slots of undelivered batches would be filled once more
  pace.close();
  sequencer.close();
  const std::lock_guard lock(join_mutex);
  workers.clear();  // joins
}

PrefetchCounters Prefetcher::Impl::counters() const {
  const Ring::Counters of_ring = ring.counters();
  PrefetchCounters counters{.batches = delivered,
                            .stall_seconds = stall.seconds(),
                            .first_batch_seconds = first_batch.seconds(),
                            .threads = {},
                            .queue_depths = queue_depths,
                            .slots = of_ring.slots,
                            .slots_grown = of_ring.grown};
  for (const ThreadTimes& thread : times) counters.threads.push_back(to_seconds(thread));
  return counters;
}

void Prefetcher::Impl::refuse_if_forked() const {
  if (!forked()) return;
  throw Error("this iterator was opened before fork, in process " + std::to_string(home.process()) +
              "; its threads do not exist in process " + std::to_string(getpid()) +
              ": make a new iterator in the child");
}

Prefetcher::Prefetcher(std::shared_ptr<Producer> producer, PrefetchConfig config)
    : impl_(std::make_unique<Impl>(std::move(producer), config)) {
  impl_->start();
}

Prefetcher::~Prefetcher() {
  // In a forked child the threads exist in name only: to join them, or to take a lock that one of
  // them held, is to wait for ever. So the child leaves everything as it is, memory included.
  if (impl_->forked()) static_cast<void>(impl_.release());
}

std::int64_t Prefetcher::blocks_wanted() const {
  return impl_->forked() ? 0 : impl_->ring.blocks_wanted();
}

void Prefetcher::supply(std::byte* block) { impl_->ring.supply(block); }

void Prefetcher::refuse_if_forked() const { impl_->refuse_if_forked(); }

bool Prefetcher::ready() const { return impl_->sequencer.settled(); }

std::optional<Delivered> Prefetcher::next(const std::function<void()>& on_idle) {
  return impl_->next(on_idle);
}

void Prefetcher::close() {
  if (!impl_->forked()) impl_->close();
}

PrefetchCounters Prefetcher::counters() const { return impl_->counters(); }

}  // namespace brimful
