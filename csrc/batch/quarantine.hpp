// Quarantine: pieces that cannot be trained on, found while their slot is filled. A piece is bad
// when it holds a token outside the vocabulary or a negative one, or when the loss mask of its
// whole document leaves no label. It keeps its place in the batch, as a tail of pad tokens would,
// so the plan never changes. Pieces of a split document are judged one by one.
#pragma once

#include <cstdint>
#include <optional>

#include "corpus/corpus.hpp"
#include "corpus/token_reader.hpp"

namespace brimful {

enum class BadReason : std::uint8_t { kToken, kMasked };

struct BadPiece {
  const TokenStore* store;
  std::int64_t document;
  BadReason reason;
  std::int64_t place;  // of the first bad token in the document; 0 for kMasked
  std::int64_t token;  // that token; 0 for kMasked
  std::int64_t tokens;
  std::int64_t effective_tokens;  // labels that the plan gave the piece
  bool begins;                    // holds the document's first token
  bool first;                     // of the document's bad pieces: it stands for the document
};

// One piece as it is stored.
struct StoredPiece {
  DocumentRef ref;
  std::int64_t document;
  std::int64_t start;  // first token in its document
  std::int64_t length;
  const std::byte* values;        // of the first token
  const std::uint8_t* mask;       // null: every token is trained
  std::int64_t effective_tokens;  // labels that the mask leaves
};

// What is wrong with a piece, or nothing. To be called where reads are guarded; owns nothing. The
// reader gives what else of the document there is to look at: the values of a bad piece are gone
// then.
std::optional<BadPiece> inspect(const StoredPiece& piece, std::optional<std::int64_t> vocab_size,
                                TokenReader& reader);

// Whether one token, as it is stored, is a bad one.
bool is_bad(TokenType type, const std::byte* value, std::optional<std::int64_t> vocab_size);

// The error that a bad piece is under the rule "error".
[[noreturn]] void throw_bad_piece(const BadPiece& bad, std::optional<std::int64_t> vocab_size);

}  // namespace brimful
