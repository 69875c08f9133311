// How a document becomes pieces, and how many slots of a bin each of them takes. Lengths in tokens,
// sizes in slots; they are the same unless pieces are aligned or begin with a start token.
#pragma once

#include <cstdint>

#include "plan/packer.hpp"

namespace brimful {

class PieceRule {
 public:
  // Throws PlanError for a capacity outside 1 .. 2^31 - 1 and for options that do not fit it.
  PieceRule(std::int64_t capacity, const PackOptions& options);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t payload() const { return payload_; }  // most tokens in a piece
  std::int64_t min_piece() const { return min_piece_; }
  std::int64_t start_tokens() const { return start_tokens_; }  // in front of each piece
  Overlong overlong() const { return overlong_; }
  // A piece takes as many slots as it has tokens.
  bool exact() const { return align_ == 1 && start_tokens_ == 0; }

  // Slots of a piece of 1 .. payload() tokens.
  std::int32_t size(std::int64_t length) const {
    const auto slots = static_cast<std::uint32_t>(length + start_tokens_);
    if (align_ == 1) return static_cast<std::int32_t>(slots);
    return static_cast<std::int32_t>((slots + align_ - 1) / align_ * align_);
  }

  // Tokens of the next piece of a document that is split, with `rest` tokens to go. A remainder
  // that would be too short takes from the piece before it.
  std::int64_t next_length(std::int64_t rest) const {
    if (rest <= payload_) return rest;
    return rest - payload_ < min_piece_ ? rest - min_piece_ : payload_;
  }

  // Tokens of the piece at `start` of a document that is not dropped.
  std::int64_t length_at(std::int64_t start, std::int64_t document_length) const {
    if (document_length <= payload_) return document_length;
    return overlong_ == Overlong::kTruncate ? payload_ : next_length(document_length - start);
  }

  // Calls f(start, length) for each piece of a document, in order; never for an empty one.
  template <class F>
  void each_piece(std::int64_t document_length, F&& f) const {
    std::int64_t rest = document_length;
    std::int64_t start = 0;
    if (rest > payload_) [[unlikely]] {
      if (overlong_ == Overlong::kDrop) return;
      if (overlong_ == Overlong::kTruncate) rest = payload_;
      while (rest > payload_) {
        const std::int64_t length = next_length(rest);
        f(start, length);
        start += length;
        rest -= length;
      }
    }
    if (rest > 0) f(start, rest);
  }

 private:
  std::int64_t capacity_;
  std::int64_t payload_;
  std::int64_t min_piece_;
  std::uint32_t align_;
  std::uint32_t start_tokens_;
  Overlong overlong_;
};

}  // namespace brimful
