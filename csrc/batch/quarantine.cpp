#include "batch/quarantine.hpp"

#include <string>
#include <type_traits>

#include "core/columns.hpp"
#include "core/error.hpp"

namespace brimful {
namespace {

// Tokens from here up are bad; below zero they are huge as unsigned ones.
std::uint64_t limit_of(std::optional<std::int64_t> vocab_size) {
  constexpr std::uint64_t kAllBelowZero = std::uint64_t{1} << 63;
  return vocab_size ? static_cast<std::uint64_t>(*vocab_size) : kAllBelowZero;
}

// The first bad one of the first `count` tokens of a document, or `count`.
template <class T>
std::int64_t first_bad(const DocumentRef& ref, std::int64_t count, std::uint64_t limit,
                       TokenReader& reader) {
  if (count == 0) return 0;
  return columns::first_outside<T>(reader.tokens(*ref.store, ref.extent.begin, count), limit,
                                   count);
}

// Of the whole document. One of a single token has no label anyway; its mask speaks for it.
bool all_masked(const DocumentRef& ref, TokenReader& reader) {
  const auto& [begin, length] = ref.extent;
  const std::uint8_t* mask = reader.loss_mask(*ref.store, begin, length);
  return length == 1 ? mask[0] == 0 : columns::count_set(mask + 1, length - 1) == 0;
}

template <class T>
std::optional<BadPiece> inspect_tokens(const StoredPiece& piece, BadPiece bad,
                                       std::optional<std::int64_t> vocab_size,
                                       TokenReader& reader) {
  if (std::is_unsigned_v<T> && !vocab_size) return std::nullopt;
  const std::uint64_t limit = limit_of(vocab_size);
  const std::int64_t at = columns::first_outside<T>(piece.values, limit, piece.length);
  if (at == piece.length) return std::nullopt;
  bad.place = piece.start + at;
  bad.token = static_cast<std::int64_t>(columns::load<T>(piece.values, at));
  bad.first = first_bad<T>(piece.ref, piece.start, limit, reader) == piece.start;
  return bad;
}

}  // namespace

std::optional<BadPiece> inspect(const StoredPiece& piece, std::optional<std::int64_t> vocab_size,
                                TokenReader& reader) {
  const BadPiece bad{.store = piece.ref.store,
                     .document = piece.document,
                     .reason = BadReason::kToken,
                     .place = 0,
                     .token = 0,
                     .tokens = piece.length,
                     .effective_tokens = piece.effective_tokens,
                     .begins = piece.start == 0,
                     .first = piece.start == 0};
  auto outside = visit_type(piece.ref.store->type, [&](auto type) {
    return inspect_tokens<typename decltype(type)::type>(piece, bad, vocab_size, reader);
  });
  if (piece.mask == nullptr || piece.effective_tokens > 0) return outside;
  if (outside) {
    // Of a document without a label the piece at its start was bad already.
    if (outside->first && piece.start > 0) outside->first = !all_masked(piece.ref, reader);
    return outside;
  }
  if (!all_masked(piece.ref, reader)) return std::nullopt;
  BadPiece masked = bad;
  masked.reason = BadReason::kMasked;
  return masked;
}

bool is_bad(TokenType type, const std::byte* value, std::optional<std::int64_t> vocab_size) {
  return visit_type(type, [&](auto stored) {
    using T = typename decltype(stored)::type;
    return columns::first_outside<T>(value, limit_of(vocab_size), 1) == 0;
  });
}

void throw_bad_piece(const BadPiece& bad, std::optional<std::int64_t> vocab_size) {
  std::string text = bad.store->name + ": document " + std::to_string(bad.document);
  if (bad.reason == BadReason::kMasked) {
    text += " has a loss mask that leaves no label";
  } else {
    text += " has token " + std::to_string(bad.token) + " at place " + std::to_string(bad.place);
    text += vocab_size ? "; with vocab_size=" + std::to_string(*vocab_size) +
                             " tokens go from 0 to " + std::to_string(*vocab_size - 1)
                       : "; tokens go from 0 up";
    text += ". Check that the file's dtype and tokenizer are the ones declared";
  }
  throw FormatError(text + "; bad_documents=\"skip\" puts such documents aside, counted");
}

}  // namespace brimful
