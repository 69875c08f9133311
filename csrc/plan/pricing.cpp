// The knapsack tables behind pricing: the most that a bin of each capacity can be worth, item by
// item.
#include "plan/pricing.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// to[c] = max(to[c], from[c] + value), and chosen[c] = mark where that is a rise. The stretches do
// not overlap.
BRIMFUL_HOT void raise_marked(const std::int32_t* __restrict from, std::int32_t* __restrict to,
                              std::uint8_t* __restrict chosen, std::int64_t size,
                              std::int32_t value, std::uint8_t mark) {
  for (std::int64_t c = 0; c < size; ++c) {
    const std::int32_t with = from[c] + value;
    chosen[c] = with > to[c] ? mark : chosen[c];
    to[c] = std::max(to[c], with);
  }
}

BRIMFUL_HOT void raise(const std::int32_t* __restrict from, std::int32_t* __restrict to,
                       std::int64_t size, std::int32_t value) {
  for (std::int64_t c = 0; c < size; ++c) to[c] = std::max(to[c], from[c] + value);
}

// The most items that a bin can hold.
std::int64_t most_items(const Stock& stock) {
  std::int32_t smallest = static_cast<std::int32_t>(stock.capacity);
  for (const std::int32_t size : stock.sizes) smallest = std::min(smallest, size);
  return std::min(stock.max_items, stock.capacity / smallest);
}

// Values as whole numbers: times a power of two so that the sum of any `most_items` stays below
// 2^29, rounded down. What is no number above 0 counts nothing.
struct WholeValues {
  WholeValues(std::span<const double> given, std::int64_t most_items) : values(given.size()) {
    double largest = 0;
    for (const double value : given) {
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    if (largest == 0) return;
    // Twice that fits too: sizes rounded down to a grid let twice as many items into a bin.
    constexpr double kMost = 1 << 29;
    const double most = kMost / static_cast<double>(most_items) / largest;
    scale = std::exp2(std::min(1000.0, std::floor(std::log2(most))));  // finite for tiny values too
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (std::isfinite(given[i]) && given[i] > 0) {
        values[i] = static_cast<std::int32_t>(given[i] * scale);
      }
    }
  }

  double scale = 1;
  std::vector<std::int32_t> values;
};

// The most that a bin of c tokens is worth, by c: a row for each capacity up to the bin's. Where
// the number of items can bind there is a row for each number of items, up to the most.
class Knapsack {
 public:
  Knapsack(std::int64_t capacity, std::int64_t layers)
      : width_(capacity + 1), layers_(layers), best_(at(width_ * (layers + 1))) {
    if (layers_ == 0) before_.resize(at(width_));
  }

  std::int64_t size() const { return width_ * (layers_ + 1); }
  // The place of a bin with that many items and tokens.
  std::int64_t place(std::int64_t items, std::int64_t tokens) const {
    return layers_ > 0 ? items * width_ + tokens : tokens;
  }
  std::int32_t best(std::int64_t items, std::int64_t tokens) const {
    return best_[at(place(items, tokens))];
  }

  // Adds an item there are up to `copies` of, at most 255. `chosen`, unless null, is given how many
  // of them each place takes; it must be all zeros.
  void add(std::int64_t size, std::int32_t value, std::int64_t copies, std::uint8_t* chosen) {
    if (layers_ == 0) std::copy(best_.begin(), best_.end(), before_.begin());
    // Rows in falling order read those below as they were without the item.
    for (std::int64_t k = layers_; k >= (layers_ > 0 ? 1 : 0); --k) {
      const std::int64_t most = layers_ > 0 ? std::min(copies, k) : copies;
      for (std::int64_t q = 1; q <= most && q * size < width_; ++q) {
        const std::int32_t* from = layers_ > 0 ? row(k - q) : before_.data();
        raise_row(from, row(k), q * size, width_ - q * size, static_cast<std::int32_t>(q) * value,
                  chosen ? chosen + k * width_ : nullptr, static_cast<std::uint8_t>(q));
      }
    }
  }

  // Adds an item there are enough of. `chosen` is given 1 where a place takes one more of them.
  void add_unlimited(std::int64_t size, std::int32_t value, std::uint8_t* chosen) {
    for (std::int64_t k = 1; k <= layers_; ++k) {
      raise_row(row(k - 1), row(k), size, width_ - size, value,
                chosen ? chosen + k * width_ : nullptr, 1);
    }
    if (layers_ > 0) return;
    // In place: a stretch of `size` reads the one before it, which is finished.
    for (std::int64_t begin = size; begin < width_; begin += size) {
      raise_row(best_.data() + begin - size, best_.data() + begin - size, size,
                std::min(size, width_ - begin), value, chosen ? chosen + begin - size : nullptr, 1);
    }
  }

 private:
  std::int32_t* row(std::int64_t k) { return best_.data() + k * width_; }

  // to[size + c] from from[c], for c below `count`.
  static void raise_row(const std::int32_t* from, std::int32_t* to, std::int64_t size,
                        std::int64_t count, std::int32_t value, std::uint8_t* chosen,
                        std::uint8_t mark) {
    if (chosen != nullptr) {
      raise_marked(from, to + size, chosen + size, count, value, mark);
    } else {
      raise(from, to + size, count, value);
    }
  }

  std::int64_t width_;   // capacities 0 .. capacity
  std::int64_t layers_;  // most items, or 0 for any number
  std::vector<std::int32_t> best_;
  std::vector<std::int32_t> before_;  // best_ without the item being added
};

// Rows of items that a Knapsack for this stock needs: none where capacity alone limits them.
std::int64_t binding_layers(const Stock& stock) {
  std::int32_t smallest = static_cast<std::int32_t>(stock.capacity);
  for (const std::int32_t size : stock.sizes) smallest = std::min(smallest, size);
  return stock.capacity / smallest <= stock.max_items ? 0 : stock.max_items;
}

void check(const Stock& stock, std::size_t num_values) {
  check_stock(stock);
  if (num_values != stock.sizes.size()) {
    throw PlanError("there are " + std::to_string(stock.sizes.size()) + " sizes and " +
                    std::to_string(num_values) + " values; one for each size is expected");
  }
}

// Walks through the items in the order of pricing, and remembers each place's choice.
class Pricer {
 public:
  Pricer(const Stock& stock, std::span<const double> values, bool backwards)
      : stock_(stock),
        backwards_(backwards),
        whole_(values, most_items(stock)),
        layers_(binding_layers(stock)),
        table_(stock.capacity, layers_),
        chosen_(at(num_items() * table_.size())),
        unlimited_(at(num_items())),
        last_(at(num_items())) {}

  std::int64_t num_items() const { return static_cast<std::int64_t>(stock_.sizes.size()); }
  std::int64_t item(std::int64_t step) const { return backwards_ ? num_items() - 1 - step : step; }
  double scale() const { return whole_.scale; }

  // The best pattern whose last item is that of `step`, given all steps before.
  std::int64_t add(std::int64_t step) {
    const std::int64_t size = stock_.sizes[at(item(step))];
    const std::int32_t value = whole_.values[at(item(step))];
    if (value == 0) return 0;
    std::int64_t room = stock_.capacity / size;
    if (layers_ > 0) room = std::min(room, layers_);
    std::uint8_t* chosen = chosen_.data() + step * table_.size();
    Last& last = last_[at(step)];
    unlimited_[at(step)] = stock_.counts[at(item(step))] >= room;
    if (unlimited_[at(step)]) {
      table_.add_unlimited(size, value, chosen);
      last = {1, table_.best(layers_ > 0 ? layers_ - 1 : 0, stock_.capacity - size) + value};
      return last.worth;
    }
    const std::int64_t copies = std::min<std::int64_t>(stock_.counts[at(item(step))], 255);
    for (std::int64_t q = 1; q <= copies; ++q) {
      const std::int64_t items = layers_ > 0 ? layers_ - q : 0;
      const std::int64_t worth = table_.best(items, stock_.capacity - q * size) + q * value;
      if (worth > last.worth) last = {q, worth};
    }
    table_.add(size, value, copies, chosen);
    return last.worth;
  }

  std::int64_t worth(std::int64_t step) const { return last_[at(step)].worth; }

  void write(std::int64_t step, Patterns& patterns) const {
    std::int64_t tokens = stock_.capacity;
    std::int64_t items = layers_;
    std::int64_t copies = last_[at(step)].copies;  // of the item of `step`
    while (step >= 0) {
      const std::int64_t size = stock_.sizes[at(item(step))];
      const auto take = [&](std::int64_t more) {
        tokens -= more * size;
        items -= more;
      };
      take(copies);
      if (unlimited_[at(step)]) {
        for (; choice(step, items, tokens) != 0; ++copies) take(1);
      }
      if (copies > 0) patterns.add(item(step), copies);
      if (--step < 0) break;
      copies = unlimited_[at(step)] ? 0 : choice(step, items, tokens);
    }
    patterns.close();
  }

 private:
  struct Last {
    std::int64_t copies = 0;
    std::int64_t worth = 0;
  };

  std::uint8_t choice(std::int64_t step, std::int64_t items, std::int64_t tokens) const {
    return chosen_[at(step * table_.size() + table_.place(items, tokens))];
  }

  const Stock& stock_;
  bool backwards_;
  WholeValues whole_;
  std::int64_t layers_;
  Knapsack table_;
  std::vector<std::uint8_t> chosen_;     // [items][places]
  std::vector<std::uint8_t> unlimited_;  // [items] whether `chosen` counts one by one
  std::vector<Last> last_;               // [items] the best pattern that ends with it
};

}  // namespace

Priced price_patterns(const Stock& stock, std::span<const double> values,
                      std::span<const std::int32_t> groups, bool backwards) {
  check(stock, values.size());
  if (groups.size() != stock.sizes.size()) throw PlanError("one group for each size is expected");
  if (stock.sizes.empty()) return {};
  Pricer pricer(stock, values, backwards);
  const std::int64_t steps = pricer.num_items();
  std::int64_t best = 0;
  for (std::int64_t step = 0; step < steps; ++step) best = std::max(best, pricer.add(step));

  Priced priced{.best = static_cast<double>(best) / pricer.scale(), .patterns = {}};
  // A margin above 1 keeps rounding errors of the duals from looking like improvements.
  const auto least = static_cast<std::int64_t>(pricer.scale() * (1 + 1e-7));
  for (std::int64_t step = 0; step < steps;) {
    const std::int32_t group = groups[at(pricer.item(step))];
    std::int64_t top = step;
    for (; step < steps && groups[at(pricer.item(step))] == group; ++step) {
      if (pricer.worth(step) > pricer.worth(top)) top = step;
    }
    if (pricer.worth(top) > least) pricer.write(top, priced.patterns);
  }
  return priced;
}

// Every bin is worth at most `best`, and all bins together are worth what all items are: so there
// are at least total / best bins. It holds for any values, in whole numbers without rounding, and
// for a `best` that is too high: copies without end, and items that take fewer grid steps than they
// need, only raise it. Items shorter than a step count nothing, which only lowers the total.
std::int64_t dual_bound(const Stock& stock, std::span<const double> values, std::int64_t grid) {
  check(stock, values.size());
  if (grid < 1) throw PlanError("the grid is " + std::to_string(grid) + "; at least 1 is expected");
  if (stock.sizes.empty()) return 0;
  const std::int64_t capacity = stock.capacity / grid;
  const WholeValues whole(values, most_items(stock));
  const std::int64_t layers = binding_layers(stock);
  Knapsack table(capacity, layers);
  __int128 total = 0;
  for (std::size_t i = 0; i < stock.sizes.size(); ++i) {
    const std::int64_t size = stock.sizes[i] / grid;
    const std::int32_t value = whole.values[i];
    if (size == 0 || value == 0) continue;
    total += static_cast<__int128>(stock.counts[i]) * value;
    if (stock.counts[i] < std::min<std::int64_t>(stock.capacity / stock.sizes[i], 255)) {
      table.add(size, value, stock.counts[i], nullptr);
    } else {
      table.add_unlimited(size, value, nullptr);
    }
  }
  const std::int64_t best = table.best(layers, capacity);
  return best == 0 ? 0 : static_cast<std::int64_t>((total + best - 1) / best);
}

}  // namespace brimful
