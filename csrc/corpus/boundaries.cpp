#include "corpus/boundaries.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

constexpr std::int64_t kChunk = 1 << 16;
constexpr std::int64_t kGroup = 64;

// Writes the places of `id` among n <= kChunk tokens, ascending, and returns how many. Most groups
// hold none, and seeing that takes a few vector comparisons. A header of any length may lie before
// the tokens, so they need not be aligned.
template <class T>
[[gnu::always_inline]] inline std::int64_t places_of(const std::byte* values, std::int64_t n, T id,
                                                     std::int32_t* places) {
  using Unaligned [[gnu::aligned(1), gnu::may_alias]] = T;
  const auto* tokens = reinterpret_cast<const Unaligned*>(values);
  std::size_t found = 0;
  std::int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    T any = 0;
    for (std::int64_t k = 0; k < kGroup; ++k) any |= static_cast<T>(tokens[i + k] == id);
    if (any == 0) continue;
    for (std::int64_t k = i; k < i + kGroup; ++k) {
      places[found] = static_cast<std::int32_t>(k);
      found += tokens[k] == id ? 1 : 0;
    }
  }
  for (; i < n; ++i) {
    places[found] = static_cast<std::int32_t>(i);
    found += tokens[i] == id ? 1 : 0;
  }
  return static_cast<std::int64_t>(found);
}

// Equality does not depend on signs, only on size.
BRIMFUL_HOT std::int64_t find_places(const std::byte* values, std::size_t size, std::int64_t n,
                                     std::int64_t id, std::int32_t* places) {
  switch (size) {
    case 1:
      return places_of(values, n, static_cast<std::uint8_t>(id), places);
    case 2:
      return places_of(values, n, static_cast<std::uint16_t>(id), places);
    case 4:
      return places_of(values, n, static_cast<std::uint32_t>(id), places);
    default:
      return places_of(values, n, static_cast<std::uint64_t>(id), places);
  }
}

void check_id(const TokenStore& store, std::int64_t id) {
  visit_type(store.type, [&](auto type) {
    using Limits = std::numeric_limits<typename decltype(type)::type>;
    if (id >= Limits::min() && id <= Limits::max()) return;
    throw FormatError(store.name + ": eos=" + std::to_string(id) + " cannot occur in tokens of " +
                      std::string(type_name(store.type)));
  });
}

}  // namespace

std::optional<BoundaryRule> parse_boundary_rule(std::string_view name) {
  if (name == "end") return BoundaryRule::kEnd;
  if (name == "start") return BoundaryRule::kStart;
  if (name == "pair") return BoundaryRule::kPair;
  return std::nullopt;
}

std::vector<std::int64_t> find_boundaries(const TokenStore& store, BoundaryRule rule,
                                          std::int64_t id) {
  check_id(store, id);
  const std::size_t size = item_size(store.type);
  std::vector<std::int64_t> offsets{0};
  const auto add = [&](std::int64_t offset) {
    if (offset != offsets.back()) offsets.push_back(offset);
  };
  std::vector<std::int32_t> places(kChunk + 1);
  bool open = false;  // kPair: the last occurrence opened a document
  for (std::int64_t first = 0; first < store.num_tokens; first += kChunk) {
    const std::int64_t n = std::min(kChunk, store.num_tokens - first);
    const TokenView view = view_tokens(store, first);
    std::int64_t found = 0;
    if (!read_guarded([&] { found = find_places(view.data, size, n, id, places.data()); })) {
      throw_read_error(store, first);
    }
    for (std::int64_t k = 0; k < found; ++k) {
      const std::int64_t place = first + places[static_cast<std::size_t>(k)];
      const bool begins = rule == BoundaryRule::kStart || (rule == BoundaryRule::kPair && !open);
      add(begins ? place : place + 1);
      open = !open;
    }
  }
  add(store.num_tokens);
  return offsets;
}

}  // namespace brimful
