// One walk over the documents, for counting and for placing.
#include "plan/concat.hpp"

#include <algorithm>

namespace brimful {
namespace {

// Calls place(document, start, length, bins) for as many pieces of the length as there are bins,
// one after the other, the bins closed but the last one; and close() behind the last piece of any
// other bin.
template <class Place, class Close>
void walk(const Units& units, Place&& place, Close&& close) {
  const PieceRule& rule = units.rule();
  const std::int64_t payload = rule.payload();
  std::int64_t room = rule.capacity();
  std::int64_t pieces = 0;    // in the open bin
  std::int64_t resource = 0;  // of them
  const auto next_bin = [&] {
    close();
    room = rule.capacity();
    pieces = resource = 0;
  };
  const auto documents = static_cast<std::int64_t>(units.lengths().size());
  for (std::int64_t document = 0; document < documents; ++document) {
    std::int64_t rest = units.lengths()[static_cast<std::size_t>(document)];
    const std::int64_t each = units.resource_of(document);
    if (each > units.resource_capacity()) continue;  // dropped
    std::int64_t start = 0;
    while (rest > 0) {
      if (pieces == 0 && rest > payload) {
        const std::int64_t bins = (rest - rule.min_piece()) / payload;
        if (bins > 0) {
          place(document, start, payload, bins);
          next_bin();
          start += bins * payload;
          rest -= bins * payload;
          continue;
        }
      }
      const std::int64_t most = std::min(payload, room - rule.start_tokens());
      const std::int64_t length = rest <= most ? rest : std::min(most, rest - rule.min_piece());
      if (length < std::min(rest, rule.min_piece()) || pieces == units.max_segments() ||
          each > units.resource_capacity() - resource) {
        next_bin();
        continue;
      }
      place(document, start, length, 1);
      room -= rule.size(length);
      ++pieces;
      resource += each;
      start += length;
      rest -= length;
      if (rest > 0 || room == 0) next_bin();
    }
  }
  if (pieces > 0) next_bin();
}

}  // namespace

UnitCounts survey_end_to_end(const Units& units, Packing& packing) {
  std::int64_t pieces = 0;
  std::int64_t split = -1;  // the last document that was cut
  walk(
      units,
      [&](std::int64_t document, std::int64_t start, std::int64_t, std::int64_t bins) {
        pieces += bins;
        if ((start > 0 || bins > 1) && split != document) {
          split = document;
          ++packing.split_documents;
        }
      },
      [] {});
  return {pieces, pieces};
}

void place_end_to_end(const Units& units, Packing& packing) {
  packing.bin_offsets.push_back(0);
  const auto close = [&] {
    packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
  };
  walk(
      units,
      [&](std::int64_t document, std::int64_t start, std::int64_t length, std::int64_t bins) {
        for (std::int64_t bin = 0; bin < bins; ++bin) {
          if (bin > 0) close();
          packing.documents.push_back(document);
          packing.starts.push_back(start);
          packing.lengths.push_back(static_cast<std::int32_t>(length));
          start += length;
        }
      },
      close);
}

}  // namespace brimful
