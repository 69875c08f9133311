// A course: which source each draw of a stretch of the run takes, and how often that source was
// drawn before. It is a list of phases, each a tree of the sources that are alive in it; between
// phases every source goes on where it stood, so nothing is skipped and nothing comes twice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/mix_tree.hpp"

namespace brimful {

inline constexpr std::int64_t kMostDraws = std::int64_t{1} << 62;  // of a run

// Tokens that a source delivers for a draw, on average over its documents, in units of 2^-20.
using MeanTokens = std::int64_t;
MeanTokens mean_tokens(std::int64_t tokens, std::int64_t documents);

// Tokens of `draws[s]` draws of each source s, by their means, in units of 2^-20.
using TokenUnits = unsigned __int128;
TokenUnits token_units(std::int64_t tokens);
TokenUnits tokens_of(std::span<const std::int64_t> draws, std::span<const MeanTokens> means);

// The keys that the trees of a course take their chances from. `plain_first`: the first one is
// `key` itself.
struct PhaseKeys {
  std::uint64_t key;
  bool plain_first = false;

  std::uint64_t of(std::size_t phase) const;
};

class Course {
 public:
  struct Draw {
    int source;
    std::int64_t number;  // how often this source was drawn before
  };
  static constexpr TokenUnits kEndless = ~TokenUnits{0};

  // Begins where source s was drawn drawn[s] times. One of `means` for each source.
  Course(std::vector<std::int64_t> drawn, std::vector<MeanTokens> means, PhaseKeys keys);

  // Goes on with shares of draws (0: left out); source s leaves once drawn limits[s] times (kNever:
  // it stays). Ends once all sources together were drawn for `until` tokens, those before the
  // course included, or when none is left; without either the course is endless. Throws PlanError
  // where `until` is never reached because nothing drawn has tokens.
  void extend(std::span<const double> shares, std::span<const std::int64_t> limits,
              TokenUnits until);

  std::int64_t draws() const { return draws_; }  // kNever: endless
  // Draws first, first + 1, ... of the course, as many as `out` holds.
  void draw(std::int64_t first, std::span<Draw> out) const;
  // How often each source was drawn before draw `draw`, [sources].
  std::vector<std::int64_t> drawn_before(std::int64_t draw) const;
  // The first draw before which all sources were drawn for that many tokens, those before the
  // course included; behind the last one where there are fewer.
  std::int64_t draw_at(TokenUnits tokens) const;

 private:
  // Arrivals at `tree` from draw `start` of the course on. Its leaf t stands for source live[t],
  // which was drawn origins[t] times before and has rests[t] draws left. Arrivals that find their
  // source dry are passed over; a new phase begins once half of the shares is dry, so few are.
  struct Phase {
    std::int64_t start;
    TokenUnits tokens;      // drawn before
    std::int64_t arrivals;  // kNever: of the last phase of an endless course
    bool dries;             // some rest is not kNever
    MixTree tree;
    std::vector<int> live;
    std::vector<std::int64_t> origins;
    std::vector<std::int64_t> rests;

    // Draws of each leaf before an arrival; of all leaves; and their tokens.
    std::vector<std::int64_t> taken(std::int64_t arrival) const;
    std::int64_t draws_before(std::int64_t arrival) const;
    TokenUnits tokens_before(std::int64_t arrival, std::span<const MeanTokens> means) const;
    // The last arrival before which there are `draws` draws.
    std::int64_t arrival_of(std::int64_t draws) const;
    // The first arrival before which there are that many tokens; kNever where there are fewer.
    std::int64_t arrival_at(TokenUnits tokens, std::span<const MeanTokens> means) const;
  };

  Phase begin_phase(std::vector<int> live, std::span<const double> shares,
                    std::span<const std::int64_t> limits) const;
  void append(Phase phase);
  const Phase& phase_of(std::int64_t draw) const;

  std::vector<Phase> phases_;
  std::vector<std::int64_t> begun_;  // [sources] draws before the course
  std::vector<std::int64_t> drawn_;  // [sources] and before the end of the last phase
  std::vector<MeanTokens> means_;    // [sources]
  std::int64_t draws_ = 0;
  PhaseKeys keys_;
};

}  // namespace brimful
