// Document boundaries by a rule about one token id, for tokens that have no index.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

enum class BoundaryRule : std::uint8_t {
  kEnd,    // a document ends after each occurrence
  kStart,  // a document begins at each occurrence
  kPair,   // occurrences open and close a document in turn
};
std::optional<BoundaryRule> parse_boundary_rule(std::string_view name);

// Offsets of the documents of all tokens of a store: from 0 to num_tokens, strictly ascending.
// Tokens that the rule leaves over (behind the last end, before the first start, outside a pair)
// form documents of their own. Throws FormatError for an id that the store's dtype cannot hold,
// ReadError when the file shrinks meanwhile.
std::vector<std::int64_t> find_boundaries(const TokenStore& store, BoundaryRule rule,
                                          std::int64_t id);

}  // namespace brimful
