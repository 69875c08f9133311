// One walk over the documents, for placing and for counting.
#include "plan/concat.hpp"

#include <algorithm>
#include <span>

namespace brimful {
namespace {

// Calls place(document, start, length, bins) for as many pieces of the length as there are bins,
// one after the other, the bins closed but the last one; and close() behind the last piece of any
// other bin.
template <class Place, class Close>
void walk(const Units& units, Place&& place, Close&& close) {
  const PieceRule rule = units.rule();  // copies, which place() and close() leave alone
  const std::span<const std::int64_t> lengths = units.lengths();
  const std::int64_t most_pieces = units.max_segments();
  const std::int64_t most_resource = units.resource_capacity();
  const std::int64_t payload = rule.payload();
  std::int64_t room = rule.capacity();
  std::int64_t pieces = 0;    // in the open bin
  std::int64_t resource = 0;  // of them
  const auto next_bin = [&] {
    close();
    room = rule.capacity();
    pieces = resource = 0;
  };
  const auto documents = static_cast<std::int64_t>(lengths.size());
  for (std::int64_t document = 0; document < documents; ++document) {
    std::int64_t rest = lengths[static_cast<std::size_t>(document)];
    const std::int64_t each = units.resource_of(document);
    if (each > most_resource) continue;  // dropped
    std::int64_t start = 0;
    while (rest > 0) {
      std::int64_t length = payload;
      std::int64_t bins = pieces == 0 && rest > payload ? (rest - rule.min_piece()) / payload : 0;
      if (bins == 0) {
        bins = 1;
        const std::int64_t most = std::min(payload, room - rule.start_tokens());
        length = rest <= most ? rest : std::min(most, rest - rule.min_piece());
        if (length < std::min(rest, rule.min_piece()) || pieces == most_pieces ||
            each > most_resource - resource) {
          next_bin();
          continue;
        }
      }
      place(document, start, length, bins);
      start += length * bins;
      rest -= length * bins;
      room -= rule.size(length);
      ++pieces;
      resource += each;
      if (rest > 0 || room == 0) next_bin();
    }
  }
  if (pieces > 0) next_bin();
}

}  // namespace

std::int64_t count_end_to_end(const Units& units) {
  std::int64_t pieces = 0;
  walk(
      units, [&](std::int64_t, std::int64_t, std::int64_t, std::int64_t bins) { pieces += bins; },
      [] {});
  return pieces;
}

void place_end_to_end(const Units& units, Packing& packing) {
  packing.bin_offsets.push_back(0);
  std::int64_t split = -1;  // the last document that was cut
  const auto place = [&](std::int64_t document, std::int64_t start, std::int64_t length,
                         std::int64_t bins) {
    if ((start > 0 || bins > 1) && split != document) {
      split = document;
      ++packing.split_documents;
    }
    if (bins == 1) {
      packing.documents.push_back(document);
      packing.starts.push_back(start);
      packing.lengths.push_back(static_cast<std::int32_t>(length));
      return;
    }
    const std::size_t many = static_cast<std::size_t>(bins);
    packing.documents.insert(packing.documents.end(), many, document);
    packing.lengths.insert(packing.lengths.end(), many, static_cast<std::int32_t>(length));
    auto piece = static_cast<std::int64_t>(packing.starts.size());
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      if (bin > 0) packing.bin_offsets.push_back(++piece);
      packing.starts.push_back(start + bin * length);
    }
  };
  walk(units, place,
       [&] { packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size())); });
}

}  // namespace brimful
