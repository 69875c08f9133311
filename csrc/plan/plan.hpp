// The plan: a pure function of (corpus, config, seed). The draws of an epoch are cut into windows;
// each window is packed on its own and its bins are put in delivery order. Every rank computes the
// same plan, so there is nothing to communicate.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "corpus/corpus.hpp"
#include "plan/packer.hpp"
#include "plan/sampler.hpp"
#include "plan/step_order.hpp"
#include "plan/window_memo.hpp"

namespace brimful {

// A mix and the window from which it holds.
struct MixFromWindow {
  Mix mix;
  std::int64_t epoch = 0;
  std::int64_t window = 0;
};

class RowOrder;

struct PlanConfig {
  std::int64_t seq_len = 0;  // capacity of a bin, tokens
  PackOptions packing;
  std::int64_t window = 16384;  // documents packed together
  // Of documents in an epoch; where there is any, bins (or steps) are shuffled in a window too.
  Shuffle shuffle = Shuffle::kNone;
  std::int64_t shuffle_block = 256;  // documents
  std::uint64_t seed = 0;
  bool balance = false;      // bins of like cost share a step
  bool carry_label = false;  // the last token of a cut piece has the document's next for a label
  std::vector<MixFromWindow> mixes = {MixFromWindow{}};  // the first holds from the beginning
  // Where there is one, every epoch is its rows; nothing is drawn or packed, and rows are dealt to
  // ranks in blocks.
  std::shared_ptr<const RowOrder> rows = nullptr;
};

// What a piece is of its document.
enum class PieceKind : std::uint8_t { kWhole, kFirstOfSplit, kLaterOfSplit, kTruncated };

// Tokens of one document that the overlong rule took.
struct Loss {
  std::int64_t document;
  std::int64_t tokens;
};

// A packed window. `packing.documents` are document numbers of the corpus; bins stand in delivery
// order, the pieces of a bin in the order their documents were drawn.
struct WindowPlan {
  Packing packing;
  std::vector<PieceKind> kinds;     // [pieces]
  UnsetVector<DocumentRef> refs;    // [pieces] where each piece's document lies
  std::vector<std::int64_t> costs;  // [bins] attention work: the sum of squared piece lengths
  std::vector<Loss> dropped;        // documents left out whole, in draw order
  std::vector<Loss> truncated;      // cut ends, in draw order
};

// Whether the document goes on in another piece: what a rule took away counts as nothing.
bool is_cut(const WindowPlan& window, std::size_t piece);

class Plan {
 public:
  // Throws PlanError for a configuration that cannot be planned.
  Plan(std::shared_ptr<const Corpus> corpus, PlanConfig config);

  // Whether the run is over before an epoch: all its sources have left.
  bool is_over(std::int64_t epoch) const { return sampler_.is_over(epoch); }
  // Throws PlanError where it is.
  void check_epoch(std::int64_t epoch) const;

  const Corpus& corpus() const { return *corpus_; }
  const PlanConfig& config() const { return config_; }
  // Of what is drawn; throws PlanError where rows come in an order from outside.
  const Sampler& draws() const;
  // Epochs that can be numbered.
  std::int64_t most_epochs() const { return sampler_.most_epochs(); }

  std::int64_t num_windows(std::int64_t epoch) const;
  std::int64_t num_bins(std::int64_t epoch, std::int64_t w) const;
  // Under `balance`, a window's bins are the same in any step order, and so is each bin; the
  // default one delivers them as without balance.
  WindowPlan window(std::int64_t epoch, std::int64_t w, StepOrder order = {}) const;
  // The same, for a look at a place that may be dealt next.
  std::shared_ptr<const WindowPlan> look_at(const WindowId& id) const;
  // The same, to be dealt: not planned again if it was the last one that was looked at.
  std::shared_ptr<const WindowPlan> to_deal(const WindowId& id) const;
  // Labels that are not -100 in each piece of a bin, from the index and loss masks alone, written
  // behind what `out` holds. Returns their sum.
  std::int64_t effective_tokens(const WindowPlan& window, std::int64_t bin,
                                std::vector<std::int64_t>& out) const;

 private:
  // Where rows come in an order from outside, those of window w: the first of them, and how many.
  std::pair<std::int64_t, std::int64_t> rows_of(std::int64_t w) const;

  std::shared_ptr<const Corpus> corpus_;
  PlanConfig config_;
  Sampler sampler_;
  std::int64_t window_rows_ = 0;  // of an order from outside
  bool has_loss_masks_ = false;
  mutable WindowMemo looked_at_;
};

}  // namespace brimful
