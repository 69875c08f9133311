// Counts that add up. Tokens are real tokens, effective ones have a label, slots are places.
#pragma once

#include <cstdint>
#include <vector>

namespace brimful {

struct Tally {
  std::int64_t bins = 0;
  std::int64_t slots = 0;
  std::int64_t tokens = 0;
  std::int64_t effective_tokens = 0;
  std::int64_t documents = 0;  // begun: pieces that hold a document's first token
  std::int64_t dropped_documents = 0;
  std::int64_t dropped_tokens = 0;
  std::int64_t truncated_documents = 0;
  std::int64_t split_documents = 0;
  std::int64_t empty_documents = 0;
  std::int64_t dummy_rows = 0;
  std::int64_t skipped_steps = 0;
  std::int64_t skipped_documents = 0;
  std::int64_t skipped_tokens = 0;

  Tally& operator+=(const Tally& other);
};

// What was delivered, dropped and skipped of one source.
struct SourceTally {
  int source = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t effective_tokens = 0;
  std::int64_t dropped_documents = 0;
  std::int64_t dropped_tokens = 0;
  std::int64_t skipped_documents = 0;
  std::int64_t skipped_tokens = 0;

  SourceTally& operator+=(const SourceTally& other);
};

// Steps delivered whole, and how uneven the work of their ranks was.
struct Evenness {
  std::int64_t steps = 0;
  double imbalance = 0;  // sum over steps of max / mean of the ranks' attention work

  Evenness& operator+=(const Evenness& other);
};

// What one delivery adds: to this rank's counts, to those of all ranks, and by source (all ranks;
// only sources that changed, some perhaps in several entries).
struct Delta {
  Tally rank;
  Tally global;
  std::vector<SourceTally> exposure;
  Evenness evenness;

  SourceTally& of_source(int source);
  Delta& operator+=(const Delta& other);
};

}  // namespace brimful
