// The table of sums, and the packer that takes pieces one by one.
#include "plan/streaming.hpp"

#include <algorithm>
#include <bit>

#include "core/cpu.hpp"
#include "plan/pieces.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// to = from | (from << shift), over `words` words; from[-1] is 0.
BRIMFUL_HOT void or_shifted(const std::uint64_t* from, std::uint64_t* to, std::size_t words,
                            std::size_t shift) {
  const std::size_t skip = shift / 64;
  const unsigned bits = shift % 64;
  for (std::size_t w = 0; w < skip; ++w) to[w] = from[w];
  const std::uint64_t* low = from - 1;
  for (std::size_t w = skip; w < words; ++w) {
    // Two shifts, as one by 64 is not defined.
    to[w] = from[w] | low[w - skip + 1] << bits | low[w - skip] >> 1 >> (63 - bits);
  }
}

bool test(const std::uint64_t* row, std::int64_t i) { return (row[i / 64] >> (i % 64) & 1) != 0; }

class StreamingPacker {
 public:
  StreamingPacker(std::int64_t buffer, Packing& packing)
      : buffer_(at(buffer)), free_(0), packing_(packing) {
    packing_.bin_offsets.push_back(0);
  }

  void push(std::int64_t document, std::int64_t start, std::int32_t length) {
    if (waiting_.capacity() == waiting_.size()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(oldest_));
      oldest_ = 0;
      waiting_.reserve(2 * waiting_.size() + 64);
    }
    waiting_.push_back({document, start, arrived_++, length});
    tokens_ += length;
    while (full()) step();
  }

  void finish() {
    // With nothing to come, longest first wastes less; what waits may go in any order.
    std::stable_sort(waiting_.begin() + static_cast<std::ptrdiff_t>(oldest_), waiting_.end(),
                     [](const Piece& a, const Piece& b) { return a.length > b.length; });
    while (count() > 0) step();
    if (!bin_.empty()) close();
  }

 private:
  struct Piece {
    std::int64_t document;
    std::int64_t start;
    std::int64_t arrival;
    std::int32_t length;
  };

  std::size_t count() const { return waiting_.size() - oldest_; }
  const Piece& oldest() const { return waiting_[oldest_]; }

  // No piece may be added before one is taken.
  bool full() const {
    return count() >= buffer_ || (count() > 0 && at(arrived_ - oldest().arrival) >= 3 * buffer_);
  }

  // Takes pieces from the buffer, or closes the bin for want of one that fits.
  void step() {
    if (bin_.empty()) {
      free_ = packing_.capacity;
      take_oldest();
    } else if (oldest().length <= free_ && has_room_for_many()) {
      take_oldest();
    } else if (!fill()) {
      close();
      return;
    }
    if (free_ == 0) close();
  }

  // Far from full any piece will do, and the oldest is best; so sums stay small.
  bool has_room_for_many() const {
    return free_ * static_cast<std::int64_t>(count()) > kFew * tokens_;
  }

  void take(const Piece& piece) {
    bin_.push_back(piece);
    free_ -= piece.length;
    tokens_ -= piece.length;
  }

  void take_oldest() {
    take(waiting_[oldest_]);
    ++oldest_;
  }

  bool fill() {
    // Large sums are counted in units. Lengths are rounded up, so that what seems to fit does; one
    // that would be rounded over the target fits alone.
    const std::int64_t unit = free_ / kMostSums + 1;
    const std::int64_t target = free_ / unit;
    sums_.reset(target);
    candidates_.clear();
    for (std::size_t i = oldest_; i < waiting_.size(); ++i) {
      const std::int64_t length = waiting_[i].length;
      if (length > free_) continue;
      const std::int64_t size = unit == 1 ? length : std::min(target, (length + unit - 1) / unit);
      candidates_.push_back(i);
      if (sums_.add(size)) break;
    }
    if (candidates_.empty()) return false;
    chosen_.clear();
    sums_.best_subset(chosen_);
    for (const std::int64_t item : chosen_) take(waiting_[candidates_[at(item)]]);
    // Older pieces move into the gaps: they are few, as sums are made of the oldest first.
    std::size_t end = candidates_[at(chosen_.back())] + 1;
    std::size_t next = chosen_.size();
    for (std::size_t i = end; i-- > oldest_;) {
      if (next > 0 && i == candidates_[at(chosen_[next - 1])]) {
        --next;
      } else {
        waiting_[--end] = waiting_[i];
      }
    }
    oldest_ = end;
    return true;
  }

  void close() {
    const auto older = [](const Piece& a, const Piece& b) { return a.arrival < b.arrival; };
    if (!std::is_sorted(bin_.begin(), bin_.end(), older)) {
      std::sort(bin_.begin(), bin_.end(), older);
    }
    for (const Piece& piece : bin_) {
      packing_.documents.push_back(piece.document);
      packing_.starts.push_back(piece.start);
      packing_.lengths.push_back(piece.length);
    }
    packing_.bin_offsets.push_back(static_cast<std::int64_t>(packing_.documents.size()));
    bin_.clear();
  }

  static constexpr std::int64_t kFew = 8;  // pieces that the last step of a fill chooses, about
  static constexpr std::int64_t kMostSums = 1 << 16;

  std::size_t buffer_;
  std::int64_t free_;  // in the open bin
  Packing& packing_;
  std::int64_t arrived_ = 0;
  std::int64_t tokens_ = 0;     // waiting
  std::vector<Piece> waiting_;  // from oldest_ on, in arrival order
  std::size_t oldest_ = 0;
  std::vector<Piece> bin_;  // the open one; empty: none is open
  SubsetSums sums_;
  std::vector<std::size_t> candidates_;  // in waiting_, the items of sums_
  std::vector<std::int64_t> chosen_;     // items
};

}  // namespace

void SubsetSums::reset(std::int64_t target) {
  target_ = target;
  total_ = 0;
  hit_ = false;
  words_ = 1;
  stride_ = at(target / 64 + 2);
  sizes_.clear();
  if (table_.size() < stride_) table_.resize(stride_);
  table_[0] = 0;
  table_[1] = 1;  // the sum of nothing
}

bool SubsetSums::add(std::int64_t size) {
  const std::size_t last = sizes_.size();
  sizes_.push_back(size);
  if (total_ >= target_ - size && test(row(last), target_ - size)) {
    hit_ = true;
    return true;
  }
  if (table_.size() < (last + 2) * stride_) table_.resize(2 * (last + 2) * stride_);
  total_ = std::min(target_, total_ + size);
  const std::size_t words = at(total_ / 64 + 1);
  std::fill(row(last) + words_, row(last) + words, 0);
  row(last + 1)[-1] = 0;
  or_shifted(row(last), row(last + 1), words, at(size));
  words_ = words;
  return false;
}

void SubsetSums::best_subset(std::vector<std::int64_t>& items) const {
  auto item = static_cast<std::int64_t>(sizes_.size());
  std::int64_t sum = target_;
  if (hit_) {
    items.push_back(--item);
    sum -= sizes_[at(item)];
  } else {
    // Bits beyond the target may be set in its word.
    sum = total_;
    while (!test(row(at(item)), sum)) --sum;
  }
  // Rows only grow: an item is needed where the sum is missing from the row before it.
  while (sum > 0) {
    --item;
    if (test(row(at(item)), sum)) continue;
    items.push_back(item);
    sum -= sizes_[at(item)];
  }
  std::reverse(items.begin(), items.end());
}

void place_streaming(std::span<const std::int64_t> lengths, Overlong overlong, std::int64_t buffer,
                     Packing& packing) {
  StreamingPacker packer(buffer, packing);
  each_piece(lengths, packing.capacity, overlong,
             [&](std::int64_t document, std::int64_t start, std::int32_t length) {
               packer.push(document, start, length);
             });
  packer.finish();
}

}  // namespace brimful
