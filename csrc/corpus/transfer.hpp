// Copies out of a token store, for those who write its documents elsewhere. Places count from the
// first token of the first unit; units lie end to end from there. A file that has shrunk is a
// ReadError, a range outside the store std::out_of_range.
#pragma once

#include <cstdint>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

// Tokens begin, begin + 1, ..., as they are stored, to out[0..count).
void read_tokens(const TokenStore& store, std::int64_t begin, std::int64_t count, void* out);

// The loss mask of these tokens; the store has one.
void read_loss_mask(const TokenStore& store, std::int64_t begin, std::int64_t count,
                    std::uint8_t* out);

// Some units of a store, as the sequences that they are made of.
struct Structure {
  std::int64_t begin = 0;                      // the first token of the first unit
  std::vector<std::int64_t> sequence_lengths;  // in tokens
  std::vector<std::int64_t> sequence_ends;     // of units, in sequences from the first of these
};

// The structure of units first, first + 1, ..., first + count - 1.
Structure read_structure(const TokenStore& store, std::int64_t first, std::int64_t count);

}  // namespace brimful
