// The patterns' checks, and their way to units.
#include "plan/by_patterns.hpp"

#include <string>

#include "core/error.hpp"
#include "plan/large.hpp"
#include "plan/units.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

void check_alike(const Units& units) {
  if (!units.many_sided()) return;
  throw PlanError(
      "strategy=\"optimal\" knows one capacity: it takes no resource, and no max_segments together "
      "with groups; choose strategy=\"best_fit\" or \"streaming\", which take both");
}

// Each pattern fits a bin, and all together hold each size as often as there are units of it.
void check_cover(const PatternView& patterns, const PieceSequence& sequence, const Units& units) {
  std::vector<std::int64_t> missing;
  missing.reserve(sequence.groups.size());
  for (const SizeGroup& group : sequence.groups) missing.push_back(group.count);
  check_patterns(patterns, static_cast<std::int64_t>(missing.size()));
  for (std::size_t p = 0; p < patterns.times.size(); ++p) {
    std::int64_t free = units.capacity();
    std::int64_t pieces = units.max_segments();
    for (std::int64_t e = patterns.offsets[p]; e < patterns.offsets[p + 1]; ++e) {
      const std::int64_t copies = patterns.copies[at(e)];
      free -= copies * sequence.groups[at(patterns.items[at(e)])].size;
      pieces -= copies;
      std::int64_t& rest = missing[at(patterns.items[at(e)])];
      // More would be refused below; less cannot overflow.
      rest = patterns.times[p] > rest / copies ? -1 : rest - copies * patterns.times[p];
      if (free < 0 || pieces < 0 || rest < 0) {
        throw PlanError("pattern " + std::to_string(p) +
                        " holds more than a bin does, or than there is");
      }
    }
  }
  for (const std::int64_t rest : missing) {
    if (rest > 0) throw PlanError("the patterns leave " + std::to_string(rest) + " units out");
  }
}

void write(const PatternView& patterns, const PieceSequence& sequence, Packing& packing) {
  std::vector<std::size_t> next;  // the next unit of each size
  std::size_t first = 0;
  for (const SizeGroup& group : sequence.groups) {
    next.push_back(first);
    first += at(group.count);
  }
  packing.documents.resize(first);
  packing.starts.resize(first);
  packing.lengths.resize(first);
  packing.bin_offsets.push_back(0);
  std::size_t out = 0;
  for (std::size_t p = 0; p < patterns.times.size(); ++p) {
    for (std::int64_t bin = 0; bin < patterns.times[p]; ++bin) {
      for (std::int64_t e = patterns.offsets[p]; e < patterns.offsets[p + 1]; ++e) {
        const std::size_t item = at(patterns.items[at(e)]);
        for (std::int32_t copy = 0; copy < patterns.copies[at(e)]; ++copy, ++out) {
          const std::size_t unit = next[item]++;
          packing.documents[out] = sequence.documents[unit];
          if (!sequence.starts.empty()) packing.starts[out] = sequence.starts[unit];
          packing.lengths[out] = sequence.groups[item].size;
        }
      }
      packing.bin_offsets.push_back(static_cast<std::int64_t>(out));
    }
  }
}

}  // namespace

std::vector<SizeGroup> unit_histogram(std::span<const std::int64_t> lengths, std::int64_t capacity,
                                      const PackOptions& options) {
  const Units units = Units(lengths, capacity, options).copied();
  check_alike(units);
  Packing packing;
  packing.capacity = capacity;
  const UnitCounts counts = units.survey(options.strategy, packing);
  std::vector<std::int32_t> sizes;
  reserve_large(sizes, at(counts.units));
  units.each([&](const Unit& unit) { sizes.push_back(unit.size); });
  return size_histogram(sizes, capacity);
}

Packing pack_by_patterns(std::span<const std::int64_t> lengths, std::int64_t capacity,
                         const PackOptions& options, const PatternView& patterns) {
  const Units units = Units(lengths, capacity, options).copied();
  check_alike(units);
  Packing packing;
  packing.capacity = capacity;
  const UnitCounts counts = units.survey(options.strategy, packing);
  PieceSequence sequence = decreasing_sequence(units, counts.units, packing.split_documents > 0);
  if (options.seed) shuffle_equal(sequence, *options.seed);
  check_cover(patterns, sequence, units);
  packing.reserve(counts.units);
  write(patterns, sequence, packing);
  units.unfold(packing);
  return packing;
}

}  // namespace brimful
