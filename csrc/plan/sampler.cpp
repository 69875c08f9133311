#include "plan/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace brimful {
namespace {

using u128 = unsigned __int128;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

enum KeyTag : std::uint64_t { kPhaseKey = 1, kPassKey = 2 };

// floor((q k + f) / 2^64): arrivals among the first k that go left.
std::int64_t left_of(std::uint64_t share, std::uint64_t phase, std::int64_t k) {
  return static_cast<std::int64_t>((static_cast<u128>(share) * static_cast<u128>(k) + phase) >> 64);
}

// The arrival that is number `number` on a side with this share and phase.
std::int64_t arrival_of(std::uint64_t share, std::uint64_t phase, std::int64_t number) {
  if (number == kNever || share == 0) return kNever;
  const u128 target = (static_cast<u128>(number) + 1) << 64;
  const u128 arrival = (target - phase + share - 1) / share - 1;
  return arrival >= static_cast<u128>(kNever) ? kNever : static_cast<std::int64_t>(arrival);
}

// The largest binary fraction q / 2^64 not above part / whole, kept inside (0, 1).
std::uint64_t fraction(double part, double whole) {
  const double scaled = std::ldexp(part / whole, 64);
  if (scaled >= std::ldexp(1.0, 64)) return std::numeric_limits<std::uint64_t>::max();
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(scaled));
}

}  // namespace

MixTree::MixTree(std::span<const double> shares, std::uint64_t key) {
  struct Part {
    double share;
    int first_leaf;  // ties go by leaf order
    int child;
    bool operator>(const Part& other) const {
      return std::pair(share, first_leaf) > std::pair(other.share, other.first_leaf);
    }
  };
  std::priority_queue<Part, std::vector<Part>, std::greater<>> parts;
  for (int leaf = 0; leaf < static_cast<int>(shares.size()); ++leaf) {
    parts.push({shares[static_cast<std::size_t>(leaf)], leaf, ~leaf});
  }
  root_ = ~0;
  nodes_.reserve(shares.size());
  while (parts.size() > 1) {
    const Part left = parts.top();
    parts.pop();
    const Part right = parts.top();
    parts.pop();
    const int node = static_cast<int>(nodes_.size());
    nodes_.push_back({fraction(left.share, left.share + right.share), derive_key(key, node),
                      left.child, right.child});
    parts.push({left.share + right.share, std::min(left.first_leaf, right.first_leaf), node});
    root_ = node;
  }
}

MixTree::Arrival MixTree::arrival(std::int64_t k) const {
  int at = root_;
  while (at >= 0) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    const std::int64_t before = left_of(node.share, node.phase, k);
    if (left_of(node.share, node.phase, k + 1) > before) {
      k = before;
      at = node.left;
    } else {
      k -= before;
      at = node.right;
    }
  }
  return {~at, k};
}

void MixTree::count(std::int64_t k, std::span<std::int64_t> counts) const {
  std::vector<std::int64_t> arrivals(nodes_.size());
  const auto give = [&](int child, std::int64_t n) {
    (child >= 0 ? arrivals[static_cast<std::size_t>(child)]
                : counts[static_cast<std::size_t>(~child)]) = n;
  };
  give(root_, k);
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    const std::int64_t left = left_of(node.share, node.phase, arrivals[i]);
    give(node.left, left);
    give(node.right, arrivals[i] - left);
  }
}

void MixTree::locate(std::span<std::int64_t> numbers) const {
  // The way up from a leaf: who is the parent, and on which side.
  std::vector<std::pair<int, bool>> node_up(nodes_.size(), {-1, false});
  std::vector<std::pair<int, bool>> leaf_up(numbers.size(), {-1, false});
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    for (const auto& [child, is_left] :
         {std::pair(node.left, true), std::pair(node.right, false)}) {
      (child >= 0 ? node_up[static_cast<std::size_t>(child)]
                  : leaf_up[static_cast<std::size_t>(~child)]) = {i, is_left};
    }
  }
  for (std::size_t leaf = 0; leaf < numbers.size(); ++leaf) {
    std::int64_t k = numbers[leaf];
    for (auto [at, is_left] = leaf_up[leaf]; at >= 0;) {
      const Node& node = nodes_[static_cast<std::size_t>(at)];
      // Seen from the right side, the share is 2^64 - q and the phase 2^64 - 1 - f.
      k = is_left ? arrival_of(node.share, node.phase, k)
                  : arrival_of(0 - node.share, ~node.phase, k);
      std::tie(at, is_left) = node_up[static_cast<std::size_t>(at)];
    }
    numbers[leaf] = k;
  }
}

Sampler::Sampler(const Corpus& corpus, bool shuffle, std::uint64_t seed)
    : shuffle_(shuffle), seed_(seed) {
  const Mix& mix = corpus.mix();
  const bool weighted = !mix.weights.empty();
  std::vector<double> shares;
  bool by_documents = true;  // shares in proportion to document counts, within rounding
  for (int s = 0; s < corpus.num_sources(); ++s) {
    const std::int64_t first = corpus.source_start(s);
    const std::int64_t count = corpus.source_start(s + 1) - first;
    const double weight = weighted ? mix.weights[static_cast<std::size_t>(s)] : 1.0;
    const std::int64_t tokens = corpus.source_tokens(s);
    const bool by_tokens = weighted && mix.unit == WeightUnit::kTokens;
    if (count == 0 || weight == 0 || (by_tokens && tokens == 0)) continue;
    double share = weighted ? weight : static_cast<double>(count);
    if (by_tokens) share *= static_cast<double>(count) / static_cast<double>(tokens);
    if (!leaves_.empty()) {
      const double expected =
          shares.front() * static_cast<double>(count) / static_cast<double>(leaves_.front().count);
      by_documents = by_documents && std::abs(share - expected) <= 1e-9 * expected;
    }
    leaves_.push_back({s, first, count});
    shares.push_back(share);
    epoch_draws_ += count;
  }
  if (leaves_.empty()) {
    if (corpus.num_documents() > 0 && weighted) {
      throw PlanError("mix: every source that has documents has weight 0; give one a weight");
    }
    return;
  }
  const std::uint64_t key = derive_key(seed_, kPhaseKey);
  // Sources that run dry together give whole epochs whatever the rule says.
  whole_epochs_ = by_documents || mix.when_dry == WhenDry::kDrop;
  if (whole_epochs_) {
    plan_whole_epochs(shares, key);
    return;
  }
  std::vector<int> live(leaves_.size());
  std::iota(live.begin(), live.end(), 0);
  phases_.push_back({0, MixTree(shares, key), live, std::vector<std::int64_t>(leaves_.size(), 0)});
  std::vector<std::int64_t> dry(leaves_.size());
  for (std::size_t l = 0; l < leaves_.size(); ++l) dry[l] = leaves_[l].count - 1;
  phases_.front().tree.locate(dry);
  const auto first_dry = std::min_element(dry.begin(), dry.end());
  if (mix.when_dry == WhenDry::kStop && *first_dry < kNever) {
    epoch_draws_ = *first_dry + 1;
  } else if (mix.when_dry == WhenDry::kError && *first_dry < epoch_draws_ - 1) {
    const Leaf& leaf = leaves_[static_cast<std::size_t>(first_dry - dry.begin())];
    throw PlanError("mix: source '" + corpus.source(leaf.source).name + "' has " +
                    std::to_string(leaf.count) + " documents and runs dry after " +
                    std::to_string(*first_dry + 1) + " of the " + std::to_string(epoch_draws_) +
                    " draws of an epoch; lower its weight, or choose when_dry=\"repeat\", \"drop\" "
                    "or \"stop\"");
  }
}

void Sampler::plan_whole_epochs(const std::vector<double>& shares, std::uint64_t key) {
  std::vector<int> live(leaves_.size());
  std::iota(live.begin(), live.end(), 0);
  std::vector<std::int64_t> drawn(leaves_.size(), 0);
  std::int64_t start = 0;
  while (!live.empty()) {
    const std::size_t n = live.size();
    std::vector<double> live_shares(n);
    std::vector<std::int64_t> origins(n);
    std::vector<std::int64_t> dry(n);  // the arrival that takes the source's last document
    for (std::size_t t = 0; t < n; ++t) {
      const auto leaf = static_cast<std::size_t>(live[t]);
      live_shares[t] = shares[leaf];
      origins[t] = drawn[leaf];
      dry[t] = leaves_[leaf].count - drawn[leaf] - 1;
    }
    MixTree tree(live_shares, derive_key(key, phases_.size()));
    tree.locate(dry);
    std::vector<std::size_t> by_end(n);
    std::iota(by_end.begin(), by_end.end(), std::size_t{0});
    std::sort(by_end.begin(), by_end.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(dry[a], a) < std::pair(dry[b], b);
    });
    // This phase ends with the arrival at which at most half of the shares is still alive.
    double alive = std::accumulate(live_shares.begin(), live_shares.end(), 0.0);
    const double half = alive / 2;
    std::int64_t end = 0;
    for (std::size_t t : by_end) {
      end = dry[t] + 1;
      alive -= live_shares[t];
      if (alive <= half) break;
    }
    std::vector<std::int64_t> counts(n);
    tree.count(end, counts);
    std::vector<int> still_live;
    std::int64_t draws = 0;
    for (std::size_t t = 0; t < n; ++t) {
      const auto leaf = static_cast<std::size_t>(live[t]);
      const std::int64_t taken = std::min(counts[t], leaves_[leaf].count - drawn[leaf]);
      drawn[leaf] += taken;
      draws += taken;
      if (drawn[leaf] < leaves_[leaf].count) still_live.push_back(live[t]);
    }
    phases_.push_back({start, std::move(tree), std::move(live), std::move(origins)});
    start += draws;
    live = std::move(still_live);
  }
}

std::int64_t Sampler::Phase::draws_before(std::int64_t arrival,
                                          std::span<const Leaf> leaves) const {
  std::vector<std::int64_t> counts(live.size());
  tree.count(arrival, counts);
  std::int64_t draws = 0;
  for (std::size_t t = 0; t < live.size(); ++t) {
    draws += std::min(counts[t], leaves[static_cast<std::size_t>(live[t])].count - origins[t]);
  }
  return draws;
}

std::int64_t Sampler::document(const Leaf& leaf, std::int64_t pass, std::int64_t number) const {
  if (!shuffle_) return leaf.first + number;
  const std::uint64_t key = derive_key(seed_, kPassKey, leaf.source, pass);
  return leaf.first +
         static_cast<std::int64_t>(permute(static_cast<std::uint64_t>(number),
                                           static_cast<std::uint64_t>(leaf.count), key));
}

std::int64_t Sampler::most_epochs() const {
  return (std::int64_t{1} << 62) / std::max<std::int64_t>(1, epoch_draws_);
}

void Sampler::draw(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  if (out.empty()) return;
  if (!whole_epochs_) {
    const MixTree& tree = phases_.front().tree;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto [l, number] =
          tree.arrival(epoch * epoch_draws_ + first + static_cast<std::int64_t>(i));
      const Leaf& leaf = leaves_[static_cast<std::size_t>(l)];
      out[i] = document(leaf, number / leaf.count, number % leaf.count);
    }
    return;
  }
  auto phase = std::upper_bound(phases_.begin(), phases_.end(), first,
                                [](std::int64_t draw, const Phase& p) { return draw < p.start; });
  --phase;
  // The first arrival of the phase that is draw number `first`, or one passed over just before it.
  std::int64_t low = first - phase->start;
  if (phase->live.size() > 1) {
    std::int64_t step = 1;
    while (phase->draws_before(low + step, leaves_) <= first - phase->start) step *= 2;
    std::int64_t high = low + step;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (phase->draws_before(middle, leaves_) <= first - phase->start ? low : high) = middle;
    }
  }
  std::int64_t draw = first;
  for (std::size_t i = 0; i < out.size();) {
    const auto next = std::next(phase);
    if (next != phases_.end() && draw == next->start) {
      phase = next;
      low = 0;
    }
    const auto [t, count] = phase->tree.arrival(low++);
    const Leaf& leaf = leaves_[static_cast<std::size_t>(phase->live[static_cast<std::size_t>(t)])];
    const std::int64_t number = phase->origins[static_cast<std::size_t>(t)] + count;
    if (number >= leaf.count) continue;
    out[i++] = document(leaf, epoch, number);
    ++draw;
  }
}

}  // namespace brimful
