#include "plan/row_order.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "plan/locate.hpp"

namespace brimful {
namespace {

template <class T>
std::int64_t at(const void* data, std::int64_t i) {
  return std::int64_t{static_cast<const T*>(data)[i]};
}

[[noreturn]] void refuse(const std::string& what) {
  throw PlanError("indices of rows that do not fit each other: " + what);
}

[[noreturn]] void refuse_changed(std::int64_t document, const DocumentRef& ref) {
  throw ReadError(ref.store->name + ": document " + std::to_string(document) + " has " +
                  std::to_string(ref.extent.length) +
                  " tokens, and had others when the order was made: the index has changed. Make "
                  "the loader anew");
}

}  // namespace

std::int64_t Integers::operator[](std::int64_t i) const {
  if (i < 0 || i >= size) refuse("number " + std::to_string(i) + " of " + std::to_string(size));
  switch (kind) {
    case Kind::kInt16:
      return at<std::int16_t>(data, i);
    case Kind::kInt32:
      return at<std::int32_t>(data, i);
    case Kind::kUint32:
      return at<std::uint32_t>(data, i);
    case Kind::kInt64:
      break;
  }
  return at<std::int64_t>(data, i);
}

RowOrder::RowOrder(std::vector<SourceSamples> samples, Integers sources, Integers numbers,
                   std::int64_t rows)
    : samples_(std::move(samples)),
      sources_(std::move(sources)),
      numbers_(std::move(numbers)),
      rows_(rows) {
  for (const SourceSamples& source : samples_) {
    if (source.begins.size != 2 * (source.size() + 1)) refuse("beginnings of samples");
  }
  if (samples_.empty()) refuse("no source");
  const bool blended = sources_.data != nullptr;
  const std::int64_t most = blended ? std::min(sources_.size, numbers_.size) : samples_[0].size();
  if (rows_ < 0 || rows_ > most || (!blended && samples_.size() > 1)) refuse("number of rows");
}

void RowOrder::check(const Corpus& corpus) const {
  if (static_cast<std::size_t>(corpus.num_sources()) != samples_.size()) refuse("sources");
  for (int s = 0; s < corpus.num_sources(); ++s) {
    for (const TokenStore& store : corpus.source(s).stores) {
      const Extents& documents = store.documents;
      if (documents.sequence_start(documents.size()) == documents.size()) continue;
      throw PlanError(store.name +
                      ": its documents have several sequences, and Megatron orders sequences. "
                      "Open it with rows=\"sequences\"");
    }
  }
}

WindowPlan RowOrder::plan(const Corpus& corpus, std::int64_t first, std::int64_t count,
                          std::int64_t seq_len) const {
  UnsetVector<std::int64_t> documents;
  UnsetVector<Part> parts;
  std::vector<std::size_t> ends;  // [rows] of their parts
  ends.reserve(static_cast<std::size_t>(count));
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::int64_t s = sources_.data == nullptr ? 0 : sources_[row];
    const SourceSamples& source = samples_.at(static_cast<std::size_t>(s));
    const std::int64_t sample = source.order[numbers_.data == nullptr ? row : numbers_[row]];
    const std::int64_t last = source.begins[2 * sample + 2];
    const std::int64_t end = source.begins[2 * sample + 3];
    std::int64_t start = source.begins[2 * sample + 1];
    for (std::int64_t place = source.begins[2 * sample]; place <= last; ++place, start = 0) {
      documents.push_back(corpus.source_start(static_cast<int>(s)) + source.documents[place]);
      parts.push_back({start, place == last ? end : Part::kToEnd});
    }
    ends.push_back(parts.size());
  }
  const UnsetVector<DocumentRef> refs = locate(corpus, documents);

  WindowPlan plan;
  Packing& packing = plan.packing;
  packing.capacity = seq_len;
  packing.reserve(static_cast<std::int64_t>(parts.size()));
  packing.bin_offsets.reserve(ends.size() + 1);
  packing.bin_offsets.push_back(0);
  plan.kinds.reserve(parts.size());
  plan.refs.reserve(parts.size());
  std::size_t i = 0;
  for (const std::size_t end : ends) {
    std::int64_t tokens = 0;
    std::int64_t cost = 0;
    for (; i < end; ++i) {
      const std::int64_t whole = refs[i].extent.length;
      const std::int64_t start = parts[i].start;
      const std::int64_t length = (parts[i].end == Part::kToEnd ? whole : parts[i].end) - start;
      if (length < 0 || start + length > whole || length > seq_len - tokens) {
        refuse_changed(documents[i], refs[i]);
      }
      if (length == 0) continue;
      packing.documents.push_back(documents[i]);
      packing.starts.push_back(start);
      packing.lengths.push_back(static_cast<std::int32_t>(length));
      plan.kinds.push_back(length == whole ? PieceKind::kWhole
                           : start == 0    ? PieceKind::kFirstOfSplit
                                           : PieceKind::kLaterOfSplit);
      plan.refs.push_back(refs[i]);
      tokens += length;
      cost += length * length;
    }
    if (tokens != seq_len) refuse_changed(documents[end - 1], refs[end - 1]);
    packing.tokens += tokens;
    packing.bin_offsets.push_back(static_cast<std::int64_t>(packing.documents.size()));
    plan.costs.push_back(cost);
  }
  return plan;
}

}  // namespace brimful
