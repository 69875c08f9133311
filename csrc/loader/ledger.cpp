#include "loader/ledger.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace brimful {
namespace {

// Takes a part of a count; false where the count is less.
bool take(std::int64_t& count, std::int64_t part) {
  count -= part;
  return count >= 0;
}

}  // namespace

Ledger::Ledger(int num_sources) {
  counts_.exposure.resize(static_cast<std::size_t>(num_sources));
  for (int s = 0; s < num_sources; ++s) counts_.exposure[static_cast<std::size_t>(s)].source = s;
}

std::int64_t Ledger::run() const {
  const std::scoped_lock lock(mutex_);
  return run_;
}

void Ledger::add_batch(const BatchSpec& spec, const BatchMeta& meta, std::int64_t run) {
  const std::scoped_lock lock(mutex_);
  counts_.batches += 1;
  add(spec.delta, run);
  counts_.rank.effective_tokens -= meta.lost_labels;
  for (const BadPiece& piece : meta.bad) {
    counts_.rank.tokens -= piece.tokens;
    counts_.rank.effective_tokens -= piece.effective_tokens;
    counts_.rank.documents -= piece.begins ? 1 : 0;
    counts_.bad_tokens += piece.tokens;
    if (!piece.first) continue;
    counts_.bad_documents += 1;
    if (bad_documents_.size() < kMostBadDocuments) {
      bad_documents_.push_back({piece, spec.epoch, spec.step});
    }
  }
}

void Ledger::add_end(const Delta& delta, std::int64_t run) {
  const std::scoped_lock lock(mutex_);
  add(delta, run);
}

void Ledger::add(const Delta& delta, std::int64_t run) {
  counts_.rank += delta.rank;
  counts_.evenness += delta.evenness;
  if (run != run_) return;
  counts_.global += delta.global;
  for (const SourceTally& tally : delta.exposure) {
    counts_.exposure[static_cast<std::size_t>(tally.source)] += tally;
  }
}

std::vector<BadDocument> Ledger::bad_documents(std::size_t first) const {
  const std::scoped_lock lock(mutex_);
  const auto begin =
      bad_documents_.begin() + static_cast<std::ptrdiff_t>(std::min(first, bad_documents_.size()));
  return {begin, bad_documents_.end()};
}

Counts Ledger::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void Ledger::restore(const Tally& global, const std::vector<SourceTally>& exposure,
                     const Delta& ahead) {
  const std::scoped_lock lock(mutex_);
  if (exposure.size() != counts_.exposure.size()) {
    throw StateError("the state has exposure of " + std::to_string(exposure.size()) +
                     " sources; this corpus has " + std::to_string(counts_.exposure.size()));
  }
  Tally less = global;
  std::vector<SourceTally> by_source = exposure;
  bool there = take(less.dropped_documents, ahead.global.dropped_documents) &&
               take(less.dropped_tokens, ahead.global.dropped_tokens) &&
               take(less.truncated_documents, ahead.global.truncated_documents) &&
               take(less.empty_documents, ahead.global.empty_documents);
  for (const SourceTally& lost : ahead.exposure) {
    SourceTally& source = by_source[static_cast<std::size_t>(lost.source)];
    there = there && take(source.dropped_documents, lost.dropped_documents) &&
            take(source.dropped_tokens, lost.dropped_tokens);
  }
  if (!there) {
    throw StateError(
        "the state counts fewer documents and tokens lost than the step that it has "
        "begun alone; it is not one that state_dict() returned");
  }
  counts_.global = less;
  counts_.exposure = std::move(by_source);
  ++run_;
}

void Ledger::restart() {
  const std::scoped_lock lock(mutex_);
  counts_.global = {};
  for (SourceTally& tally : counts_.exposure) tally = {.source = tally.source};
  ++run_;
}

}  // namespace brimful
