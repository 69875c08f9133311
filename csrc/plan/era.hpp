// An era: the part of a run under one mix. A run has one, and one more for each change of its mix.
// Draws are numbered through the run, and through each epoch; an era knows where its epochs begin
// and which source each of its draws takes, and a source goes on where the era before left it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "corpus/corpus.hpp"
#include "plan/course.hpp"
#include "plan/mix.hpp"

namespace brimful {

// Where an era begins.
struct EraStart {
  int number = 0;                           // of the era
  std::int64_t epoch = 0;                   // it begins in this epoch,
  std::int64_t first = 0;                   // at this draw of it
  std::int64_t epoch_start = 0;             // draw of the run with which that epoch begins
  std::vector<std::int64_t> drawn = {};     // [sources] draws before the era
  std::vector<std::int64_t> at_epoch = {};  // [sources] and before that epoch
};

class Era {
 public:
  // `deliverable`: tokens of each source that the packing can deliver. Throws PlanError for a mix
  // that this corpus cannot follow.
  Era(const Corpus& corpus, const Mix& mix, std::span<const std::int64_t> deliverable,
      std::uint64_t seed, EraStart start);

  std::int64_t epoch() const { return start_.epoch; }  // in which it begins
  std::int64_t first() const { return start_.first; }  // draw of that epoch
  // The first epoch that begins in the era.
  std::int64_t first_whole_epoch() const { return from_epoch_; }
  // The draw of the run with which an epoch that begins in the era does so, or would.
  std::int64_t epoch_start(std::int64_t epoch) const;
  // Epochs that can be numbered.
  std::int64_t most_epochs() const;

  // Draws of an epoch from draw `first` of it on, all in the era; `start` is the draw of the run
  // with which the epoch begins.
  void draw(std::int64_t epoch, std::int64_t start, std::int64_t first,
            std::span<Course::Draw> out) const;
  // How often each source was drawn before that place, [sources].
  std::vector<std::int64_t> drawn_before(std::int64_t epoch, std::int64_t start,
                                         std::int64_t first) const;

 private:
  void plan_whole_epochs(const Corpus& corpus, std::span<const double> shares, std::uint64_t key);
  // Shares of the draws, [sources], from a position of the run on.
  struct Stretch {
    std::int64_t from;
    std::vector<double> shares;
  };
  void plan_run(const Corpus& corpus, const Mix& mix, const std::vector<Stretch>& stretches,
                std::uint64_t key);
  void refuse_short_epochs(const Corpus& corpus, std::int64_t epoch_tokens,
                           const std::vector<Stretch>& stretches) const;
  void refuse_endless_epochs(std::int64_t epoch_tokens, std::span<const double> shares,
                             std::span<const std::int64_t> limits) const;
  void refuse_dry(const Corpus& corpus, std::span<const double> shares, std::uint64_t key) const;
  std::int64_t run_end() const;
  std::int64_t begin() const { return start_.epoch_start + start_.first; }

  EraStart start_;
  std::vector<MeanTokens> means_;
  std::optional<Course> course_;        // from the era's beginning on
  std::optional<Course> per_epoch_;     // each epoch from from_epoch_ on anew; else course_ goes on
  std::vector<std::int64_t> base_;      // [sources] draws before from_epoch_
  std::vector<std::int64_t> in_epoch_;  // [sources] draws of an epoch of per_epoch_
  std::int64_t from_epoch_ = 0;
  std::int64_t from_draw_ = 0;    // of the run: from_epoch_ begins
  std::int64_t epoch_draws_ = 0;  // of epochs from then on,
  TokenUnits epoch_tokens_ = 0;   // or tokens, if not 0,
  TokenUnits from_tokens_ = 0;    // drawn before from_draw_
};

}  // namespace brimful
