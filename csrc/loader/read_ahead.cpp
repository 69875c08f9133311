#include "loader/read_ahead.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

namespace brimful {
namespace {

// Neighbours so near to each other are read as one.
constexpr std::int64_t kGap = 16 << 10;
// A plan holds about so many bytes a piece, which count as well: of short documents it would hold
// more memory than the tokens that it asks for.
constexpr std::int64_t kPlanBytes = 96;
// To look at the thread's counters before a batch and after it takes two microseconds.
constexpr std::chrono::microseconds kBetweenLooks{500};
// So many chunks that were in the page cache end the asking.
constexpr int kCachedChunks = 8;

// What the calling thread has had read from storage so far, to be compared.
long storage_reads() {
  struct rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_inblock + usage.ru_majflt;
}

}  // namespace

std::optional<BatchSpec> ReadAhead::next() {
  if (reads_storage_) deal_ahead();
  if (!dealt_.empty()) {
    Dealt first = std::move(dealt_.front());
    dealt_.pop_front();
    dealt_bytes_ -= first.bytes;
    return std::move(first.spec);
  }
  if (error_) std::rethrow_exception(error_);
  if (ended_) return std::nullopt;
  auto spec = dealer_.next();
  // A page that is missed without being asked for may bring in megabytes around it.
  if (spec && !std::exchange(begun_, true)) {
    std::vector<Range> ranges;
    add_ranges(*spec, ranges);
    if (ask_for(std::move(ranges))) reads_storage_ = true;
  }
  return spec;
}

void ReadAhead::deal_ahead() {
  while (reads_storage_ && !ended_ && !error_ && dealt_bytes_ + kChunkBytes <= kAheadBytes &&
         dealt_.size() < kMaxBatches) {
    std::vector<Range> ranges;
    std::int64_t bytes = 0;
    while (bytes < kChunkBytes && dealt_.size() < kMaxBatches) {
      try {
        auto spec = dealer_.next();
        ended_ = !spec;
        if (ended_) break;
        const std::int64_t of_spec = add_ranges(*spec, ranges);
        dealt_.push_back({std::move(*spec), of_spec});
        bytes += of_spec;
      } catch (...) {
        error_ = std::current_exception();
        break;
      }
    }
    dealt_bytes_ += bytes;
    from_cache_ = ask_for(std::move(ranges)) ? 0 : from_cache_ + 1;
    if (from_cache_ == kCachedChunks) {
      from_cache_ = 0;
      reads_storage_ = false;
    }
  }
}

// Returns the bytes of tokens and of the plan that the batch has.
std::int64_t ReadAhead::add_ranges(const BatchSpec& spec, std::vector<Range>& ranges) const {
  std::int64_t bytes = 0;
  for (const BinRef& row : spec.rows) {
    const Packing& packing = row.window->packing;
    const auto bin = static_cast<std::size_t>(row.bin);
    for (auto i = packing.bin_offsets[bin]; i < packing.bin_offsets[bin + 1]; ++i) {
      const auto piece = static_cast<std::size_t>(i);
      const DocumentRef& ref = row.window->refs[piece];
      const TokenStore& store = *ref.store;
      const std::int64_t first = ref.extent.begin + packing.starts[piece];
      const std::int64_t end = first + packing.lengths[piece];
      bytes += kPlanBytes + store.byte_of(end) - store.byte_of(first);
      if (store.file != nullptr) {
        ranges.push_back({store.file.get(), store.byte_of(first), store.byte_of(end)});
      }
      if (store.loss_file != nullptr) ranges.push_back({store.loss_file.get(), first, end});
    }
  }
  return bytes;
}

bool ReadAhead::ask_for(std::vector<Range> ranges) {
  const long before = storage_reads();
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tuple(a.file, a.begin) < std::tuple(b.file, b.begin);
  });
  for (std::size_t i = 0; i < ranges.size();) {
    Range joined = ranges[i++];
    while (i < ranges.size() && ranges[i].file == joined.file &&
           ranges[i].begin <= joined.end + kGap) {
      joined.end = std::max(joined.end, ranges[i++].end);
    }
    joined.file->will_need(joined.begin, joined.end);
  }
  return storage_reads() != before;
}

ReadAhead::Reads ReadAhead::filling() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point looked;
  const Clock::time_point now = Clock::now();
  if (now - looked < kBetweenLooks) return std::nullopt;
  looked = now;
  return storage_reads();
}

// What a thread reads between batches is not the loader's: the consumer has files of its own.
void ReadAhead::filled(Reads before) {
  if (before && storage_reads() != *before) reads_storage_ = true;
}

}  // namespace brimful
