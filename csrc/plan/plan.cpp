#include "plan/plan.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "core/columns.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "corpus/read_guard.hpp"
#include "plan/locate.hpp"
#include "plan/row_order.hpp"

namespace brimful {
namespace {

enum KeyTag : std::uint64_t { kBinKey = 11 };

// The order in which a window delivers its bins: shuffled, or by each bin's earliest piece.
std::vector<std::int64_t> delivery_order(const Packing& packing, const PlanConfig& config,
                                         std::int64_t epoch, std::int64_t w) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(packing.num_bins()));
  if (config.shuffle != Shuffle::kNone) {
    const std::uint64_t key = derive_key(config.seed, kBinKey, epoch, w);
    for (std::size_t p = 0; p < order.size(); ++p) {
      order[p] = static_cast<std::int64_t>(permute(p, order.size(), key));
    }
    return order;
  }
  // A piece's place in the window: its document's draw, then where it starts.
  std::vector<std::pair<std::int64_t, std::int64_t>> earliest(order.size());
  for (std::size_t b = 0; b < order.size(); ++b) {
    std::pair<std::int64_t, std::int64_t> best{std::numeric_limits<std::int64_t>::max(), 0};
    for (std::int64_t i = packing.bin_offsets[b]; i < packing.bin_offsets[b + 1]; ++i) {
      const auto piece = static_cast<std::size_t>(i);
      best = std::min(best, {packing.documents[piece], packing.starts[piece]});
    }
    earliest[b] = best;
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return earliest[static_cast<std::size_t>(a)] < earliest[static_cast<std::size_t>(b)];
  });
  return order;
}

// The attention work of each bin. It fits: a bin's lengths add up to less than 2^31.
std::vector<std::int64_t> costs_of(const Packing& packing, std::span<const std::int64_t> order) {
  std::vector<std::int64_t> costs;
  costs.reserve(order.size());
  for (const std::int64_t b : order) {
    const auto begin = static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(b)]);
    const auto end = static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(b) + 1]);
    std::int64_t cost = 0;
    for (std::size_t i = begin; i < end; ++i) {
      cost += std::int64_t{packing.lengths[i]} * packing.lengths[i];
    }
    costs.push_back(cost);
  }
  return costs;
}

PieceKind kind_of(std::int64_t start, std::int64_t length, std::int64_t document_length,
                  const PlanConfig& config) {
  if (length == document_length) return PieceKind::kWhole;
  if (config.packing.strategy != Strategy::kConcat &&
      config.packing.overlong == Overlong::kTruncate) {
    return PieceKind::kTruncated;
  }
  return start == 0 ? PieceKind::kFirstOfSplit : PieceKind::kLaterOfSplit;
}

// Labels of one piece, `most` of them without a mask, from the stored count where that speaks of
// the same tokens.
std::int64_t labels_of(const WindowPlan& window, std::size_t piece, std::int64_t most) {
  const DocumentRef& ref = window.refs[piece];
  if (ref.store->loss_mask == nullptr) return most;
  if (ref.store->effective != nullptr && window.kinds[piece] == PieceKind::kWhole) {
    std::int64_t count;
    std::memcpy(&count, ref.store->effective + ref.local * 8, sizeof count);
    return count;
  }
  const std::int64_t first = ref.extent.begin + window.packing.starts[piece];
  return columns::count_set(ref.store->loss_mask + first + 1, most);
}

// Calls f(document, length) for documents first, ..., end - 1 of a corpus.
template <class F>
void each_length(const Corpus& corpus, std::int64_t first, std::int64_t end, const F& f) {
  std::vector<std::int64_t> lengths(1 << 14);
  while (first < end) {
    const auto count = std::min(static_cast<std::int64_t>(lengths.size()), end - first);
    corpus.lengths(first, count, lengths.data());
    for (std::int64_t i = 0; i < count; ++i) f(first + i, lengths[static_cast<std::size_t>(i)]);
    first += count;
  }
}

// The rule is about the corpus, so it speaks before the first batch, and of the corpus's documents.
void refuse_overlong(const Corpus& corpus, std::int64_t seq_len) {
  each_length(corpus, 0, corpus.num_documents(), [&](std::int64_t document, std::int64_t length) {
    if (length <= seq_len) return;
    throw PlanError("document " + std::to_string(document) + " has " + std::to_string(length) +
                    " tokens, more than seq_len = " + std::to_string(seq_len) +
                    ", and overlong=\"error\" allows none. Raise seq_len, or choose \"split\", "
                    "\"truncate\" or \"drop\"");
  });
}

// Whether draws of this mix depend on how many tokens its documents deliver.
bool counts_tokens(const Mix& mix) {
  const bool by_tokens = !mix.schedule.empty() && mix.unit == WeightUnit::kTokens;
  return by_tokens || mix.schedule.size() > 1 || mix.epoch_tokens > 0;
}

// Tokens of each source that are left when the overlong rule has taken its own, [sources].
std::vector<std::int64_t> deliverable_tokens(const Corpus& corpus, const PlanConfig& config) {
  std::vector<std::int64_t> tokens;
  tokens.reserve(static_cast<std::size_t>(corpus.num_sources()));
  for (int s = 0; s < corpus.num_sources(); ++s) tokens.push_back(corpus.source_tokens(s));
  const Overlong rule = config.packing.overlong;
  const bool takes = config.packing.strategy != Strategy::kConcat &&
                     (rule == Overlong::kTruncate || rule == Overlong::kDrop);
  const bool asked = std::any_of(config.mixes.begin(), config.mixes.end(),
                                 [](const auto& from) { return counts_tokens(from.mix); });
  if (!takes || !asked) return tokens;
  for (int s = 0; s < corpus.num_sources(); ++s) {
    std::int64_t& left = tokens[static_cast<std::size_t>(s)];
    each_length(corpus, corpus.source_start(s), corpus.source_start(s + 1),
                [&](std::int64_t, std::int64_t length) {
                  if (length <= config.seq_len) return;
                  left -= rule == Overlong::kDrop ? length : length - config.seq_len;
                });
  }
  return tokens;
}

// Rows that hold about so many documents, so that a window costs no more than another; at most one
// for each of them.
std::int64_t rows_of_about(std::int64_t documents, const Corpus& corpus, std::int64_t seq_len) {
  using Wide = unsigned __int128;
  const Wide tokens = static_cast<Wide>(documents) * static_cast<Wide>(corpus.num_tokens());
  const Wide each = static_cast<Wide>(std::max<std::int64_t>(1, corpus.num_documents())) *
                    static_cast<Wide>(seq_len);
  return static_cast<std::int64_t>(
      std::clamp(tokens / each, Wide{1}, static_cast<Wide>(documents)));
}

Sampler make_sampler(const Corpus& corpus, const PlanConfig& config) {
  if (config.window < 1) {
    throw PlanError("window is " + std::to_string(config.window) +
                    " documents; at least 1 document must be packed at a time");
  }
  if (config.shuffle_block < 1) {
    throw PlanError("shuffle_block is " + std::to_string(config.shuffle_block) +
                    " documents; a block holds at least 1");
  }
  const ShuffleRule shuffle{config.shuffle, config.shuffle_block,
                            std::max<std::int64_t>(1, config.window / config.shuffle_block)};
  std::vector<MixFrom> mixes;
  for (const auto& [mix, epoch, window] : config.mixes) {
    if (window > kMostDraws / config.window) {
      throw StateError("the state has a change of the mix at window " + std::to_string(window) +
                       ", which no epoch has");
    }
    check(mix, static_cast<std::size_t>(corpus.num_sources()));
    mixes.push_back({mix, epoch, window * config.window});
  }
  return Sampler(corpus, deliverable_tokens(corpus, config), shuffle, config.seed, mixes);
}

}  // namespace

bool is_cut(const WindowPlan& window, std::size_t piece) {
  const PieceKind kind = window.kinds[piece];
  return (kind == PieceKind::kFirstOfSplit || kind == PieceKind::kLaterOfSplit) &&
         window.packing.starts[piece] + window.packing.lengths[piece] <
             window.refs[piece].extent.length;
}

Plan::Plan(std::shared_ptr<const Corpus> corpus, PlanConfig config)
    : corpus_(std::move(corpus)),
      config_(std::move(config)),
      sampler_(make_sampler(*corpus_, config_)) {
  pack({}, config_.seq_len, config_.packing);  // checks capacity and buffer
  for (int s = 0; s < corpus_->num_sources(); ++s) {
    for (const TokenStore& store : corpus_->source(s).stores) {
      has_loss_masks_ = has_loss_masks_ || store.loss_mask != nullptr;
    }
  }
  if (config_.packing.overlong == Overlong::kError &&
      config_.packing.strategy != Strategy::kConcat) {
    refuse_overlong(*corpus_, config_.seq_len);
  }
  if (config_.rows != nullptr) {
    config_.rows->check(*corpus_);
    window_rows_ = rows_of_about(config_.window, *corpus_, config_.seq_len);
  }
}

void Plan::check_epoch(std::int64_t epoch) const {
  if (!is_over(epoch)) return;
  throw PlanError("the run is over before epoch " + std::to_string(epoch) +
                  ": every source has been drawn as often as max_passes allows, and len(loader) is "
                  "0. Stop here, or go on from the state with a loader whose mixture has a higher "
                  "max_passes: load_state_dict(state, allow_mix_change=True)");
}

const Sampler& Plan::draws() const {
  if (config_.rows == nullptr) return sampler_;
  throw PlanError("rows come in an order from outside: no documents are drawn one by one");
}

std::int64_t Plan::num_windows(std::int64_t epoch) const {
  const std::int64_t each = config_.rows != nullptr ? window_rows_ : config_.window;
  const std::int64_t all =
      config_.rows != nullptr ? config_.rows->rows() : sampler_.epoch_draws(epoch);
  return all == 0 ? 0 : (all - 1) / each + 1;
}

std::int64_t Plan::num_bins(std::int64_t epoch, std::int64_t w) const {
  return config_.rows != nullptr ? rows_of(w).second : window(epoch, w).packing.num_bins();
}

std::pair<std::int64_t, std::int64_t> Plan::rows_of(std::int64_t w) const {
  const std::int64_t first = w * window_rows_;
  return {first, std::min(window_rows_, config_.rows->rows() - first)};
}

WindowPlan Plan::window(std::int64_t epoch, std::int64_t w, StepOrder step_order) const {
  if (config_.rows != nullptr) {
    const auto [row, rows] = rows_of(w);
    return config_.rows->plan(*corpus_, row, rows, config_.seq_len);
  }
  const std::int64_t first = w * config_.window;
  const auto count =
      static_cast<std::size_t>(std::min(config_.window, sampler_.epoch_draws(epoch) - first));
  UnsetVector<std::int64_t> documents(count);
  sampler_.draw(epoch, first, documents);
  const UnsetVector<DocumentRef> refs = locate(*corpus_, documents);
  UnsetVector<std::int64_t> lengths(count);
  std::transform(refs.begin(), refs.end(), lengths.begin(),
                 [](const DocumentRef& ref) { return ref.extent.length; });

  const Packing packed = pack(lengths, config_.seq_len, config_.packing);
  std::vector<std::int64_t> order = delivery_order(packed, config_, epoch, w);
  if (config_.balance && step_order.step > 0) {
    std::vector<std::int64_t> places = even_steps(costs_of(packed, order), step_order);
    for (std::int64_t& place : places) place = order[static_cast<std::size_t>(place)];
    order = std::move(places);
  }
  WindowPlan plan;
  plan.costs = costs_of(packed, order);
  Packing& ordered = plan.packing;
  ordered.capacity = packed.capacity;
  ordered.tokens = packed.tokens;
  ordered.dropped_documents = packed.dropped_documents;
  ordered.dropped_tokens = packed.dropped_tokens;
  ordered.truncated_documents = packed.truncated_documents;
  ordered.split_documents = packed.split_documents;
  ordered.empty_documents = packed.empty_documents;
  ordered.bin_offsets.reserve(packed.bin_offsets.size());
  ordered.bin_offsets.push_back(0);
  const std::size_t pieces = packed.documents.size();
  ordered.documents.reserve(pieces);
  ordered.starts.reserve(pieces);
  ordered.lengths.reserve(pieces);
  plan.kinds.reserve(pieces);
  plan.refs.reserve(pieces);
  std::vector<std::size_t> bin;
  const auto drawn_before = [&](std::size_t x, std::size_t y) {
    return std::pair(packed.documents[x], packed.starts[x]) <
           std::pair(packed.documents[y], packed.starts[y]);
  };
  for (const std::int64_t b : order) {
    const auto begin = static_cast<std::size_t>(packed.bin_offsets[static_cast<std::size_t>(b)]);
    const auto end = static_cast<std::size_t>(packed.bin_offsets[static_cast<std::size_t>(b) + 1]);
    bin.resize(end - begin);
    std::iota(bin.begin(), bin.end(), begin);
    if (!std::is_sorted(bin.begin(), bin.end(), drawn_before)) {
      std::sort(bin.begin(), bin.end(), drawn_before);
    }
    for (const std::size_t i : bin) {
      const auto drawn = static_cast<std::size_t>(packed.documents[i]);
      ordered.documents.push_back(documents[drawn]);
      ordered.starts.push_back(packed.starts[i]);
      ordered.lengths.push_back(packed.lengths[i]);
      plan.kinds.push_back(kind_of(packed.starts[i], packed.lengths[i], lengths[drawn], config_));
      plan.refs.push_back(refs[drawn]);
    }
    ordered.bin_offsets.push_back(static_cast<std::int64_t>(ordered.documents.size()));
  }
  if (packed.dropped_documents > 0 || packed.truncated_documents > 0) {
    const bool drops = config_.packing.overlong == Overlong::kDrop;
    for (std::size_t i = 0; i < count; ++i) {
      if (lengths[i] <= config_.seq_len) continue;
      (drops ? plan.dropped : plan.truncated)
          .push_back({documents[i], lengths[i] - (drops ? 0 : config_.seq_len)});
    }
  }
  return plan;
}

std::shared_ptr<const WindowPlan> Plan::look_at(const WindowId& id) const {
  if (auto known = looked_at_.find(id)) return known;
  auto planned = std::make_shared<const WindowPlan>(window(id.epoch, id.window, id.order));
  looked_at_.keep(id, planned);
  return planned;
}

std::shared_ptr<const WindowPlan> Plan::to_deal(const WindowId& id) const {
  if (auto known = looked_at_.take(id)) return known;
  return std::make_shared<const WindowPlan>(window(id.epoch, id.window, id.order));
}

std::int64_t Plan::effective_tokens(const WindowPlan& window, std::int64_t bin,
                                    std::vector<std::int64_t>& out) const {
  const Packing& packing = window.packing;
  const auto begin = static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin)]);
  const auto end = static_cast<std::size_t>(packing.bin_offsets[static_cast<std::size_t>(bin) + 1]);
  const std::size_t behind = out.size();
  for (std::size_t i = begin; i < end; ++i) {
    const bool carries = config_.carry_label && is_cut(window, i);
    out.push_back(packing.lengths[i] - (carries ? 0 : 1));
  }
  if (has_loss_masks_) {
    volatile std::size_t at = begin;
    const bool read = read_guarded([&] {
      for (std::size_t i = begin; i < end; ++i) {
        at = i;
        std::int64_t& labels = out[behind + i - begin];
        labels = labels_of(window, i, labels);
      }
    });
    if (!read) throw_read_error(*window.refs[at].store);
  }
  return std::accumulate(out.begin() + static_cast<std::ptrdiff_t>(behind), out.end(),
                         std::int64_t{0});
}

}  // namespace brimful
