#include "plan/tally.hpp"

namespace brimful {

Tally& Tally::operator+=(const Tally& other) {
  bins += other.bins;
  slots += other.slots;
  tokens += other.tokens;
  effective_tokens += other.effective_tokens;
  documents += other.documents;
  dropped_documents += other.dropped_documents;
  dropped_tokens += other.dropped_tokens;
  truncated_documents += other.truncated_documents;
  split_documents += other.split_documents;
  empty_documents += other.empty_documents;
  dummy_rows += other.dummy_rows;
  skipped_steps += other.skipped_steps;
  skipped_documents += other.skipped_documents;
  skipped_tokens += other.skipped_tokens;
  return *this;
}

SourceTally& SourceTally::operator+=(const SourceTally& other) {
  documents += other.documents;
  tokens += other.tokens;
  effective_tokens += other.effective_tokens;
  dropped_documents += other.dropped_documents;
  dropped_tokens += other.dropped_tokens;
  skipped_documents += other.skipped_documents;
  skipped_tokens += other.skipped_tokens;
  return *this;
}

Evenness& Evenness::operator+=(const Evenness& other) {
  steps += other.steps;
  imbalance += other.imbalance;
  return *this;
}

SourceTally& Delta::of_source(int source) {
  // Entries are added up where they end; keeping each source once here would take time that rises
  // with the square of the sources in a batch.
  if (exposure.empty() || exposure.back().source != source) exposure.push_back({.source = source});
  return exposure.back();
}

Delta& Delta::operator+=(const Delta& other) {
  rank += other.rank;
  global += other.global;
  for (const SourceTally& tally : other.exposure) of_source(tally.source) += tally;
  evenness += other.evenness;
  return *this;
}

}  // namespace brimful
