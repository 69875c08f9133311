// The plan: a pure function of (corpus, config, seed). Draw i of the run names a document; draws are
// cut into windows, each window is packed on its own and its bins put in delivery order.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "corpus/corpus.hpp"
#include "plan/packer.hpp"
#include "plan/sampler.hpp"

namespace brimful {

struct PlanConfig {
  std::int64_t seq_len = 0;  // capacity of a bin, tokens
  Strategy packing = Strategy::kBestFitDecreasing;
  bool pad = false;  // one document a bin, in order, instead of packing
  Overlong overlong = Overlong::kSplit;
  std::int64_t window = 16384;  // documents packed together
  bool shuffle = false;
  std::uint64_t seed = 0;
};

struct Loss {
  int source = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};

// A packed window. `packing.documents` are document numbers of the corpus; bins stand in delivery
// order and the pieces of a bin in the order their documents were drawn.
struct WindowPlan {
  Packing packing;
  std::vector<std::uint8_t> first_piece_of_split;  // [pieces] 1: first of several of its document
  std::vector<Loss> dropped;    // a document each, in draw order
  std::vector<Loss> truncated;  // documents = 0, tokens cut off, in draw order
};

class Plan {
 public:
  // Throws PlanError for a configuration that cannot be planned.
  Plan(std::shared_ptr<const Corpus> corpus, PlanConfig config);

  const Corpus& corpus() const { return *corpus_; }
  const std::shared_ptr<const Corpus>& shared_corpus() const { return corpus_; }
  const PlanConfig& config() const { return config_; }
  const Sampler& sampler() const { return sampler_; }

  std::int64_t num_windows() const;  // of an epoch
  // Window w of an epoch, packed. Pure; the last few are kept.
  std::shared_ptr<const WindowPlan> window(std::int64_t epoch, std::int64_t w) const;
  // Bins of a whole epoch, over all ranks.
  std::int64_t count_bins(std::int64_t epoch) const;

 private:
  WindowPlan make_window(std::int64_t epoch, std::int64_t w) const;

  std::shared_ptr<const Corpus> corpus_;
  PlanConfig config_;
  Sampler sampler_;
};

}  // namespace brimful
