// Extents: where units begin and how long they are, read in place. Index files put their arrays at
// odd addresses (a Megatron header has 34 bytes), so every load goes through memcpy.
#include <bit>
#include <cstring>

#include "corpus/corpus.hpp"

namespace brimful {
namespace {

template <class T>
std::int64_t load(const std::byte* base, std::int64_t i) {
  T value;
  std::memcpy(&value, base + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return static_cast<std::int64_t>(value);
}

const std::byte* bytes(const void* pointer) { return static_cast<const std::byte*>(pointer); }

}  // namespace

Extents Extents::uniform(std::int64_t count, std::int64_t length) {
  Extents e;
  e.count_ = count;
  e.length_ = length;
  return e;
}

Extents Extents::offsets32(std::int64_t count, const void* offsets) {
  Extents e;
  e.kind_ = Kind::kOffsets32;
  e.count_ = count;
  e.first_ = bytes(offsets);
  return e;
}

Extents Extents::offsets64(std::int64_t count, const void* offsets) {
  Extents e = offsets32(count, offsets);
  e.kind_ = Kind::kOffsets64;
  return e;
}

Extents Extents::megatron(std::int64_t count, const void* lengths, const void* pointers,
                          std::size_t item_size) {
  Extents e;
  e.kind_ = Kind::kMegatron;
  e.count_ = count;
  e.first_ = bytes(lengths);
  e.second_ = bytes(pointers);
  e.shift_ = std::countr_zero(item_size);
  return e;
}

Extents Extents::megatron_documents(std::int64_t count, const void* documents,
                                    std::int64_t num_sequences, const void* pointers,
                                    std::size_t item_size, std::int64_t num_tokens) {
  Extents e;
  e.kind_ = Kind::kMegatronDocuments;
  e.count_ = count;
  e.length_ = num_tokens;
  e.first_ = bytes(documents);
  e.second_ = bytes(pointers);
  e.num_sequences_ = num_sequences;
  e.shift_ = std::countr_zero(item_size);
  return e;
}

// The first token of sequence s; that of the sequence after the last one is the end of the tokens.
std::int64_t Extents::sequence_begin(std::int64_t s) const {
  return s == num_sequences_ ? length_ : load<std::int64_t>(second_, s) >> shift_;
}

Extent Extents::operator[](std::int64_t i) const {
  switch (kind_) {
    case Kind::kUniform:
      return {i * length_, length_};
    case Kind::kOffsets32: {
      const std::int64_t begin = load<std::int32_t>(first_, i);
      return {begin, load<std::int32_t>(first_, i + 1) - begin};
    }
    case Kind::kOffsets64: {
      const std::int64_t begin = load<std::int64_t>(first_, i);
      return {begin, load<std::int64_t>(first_, i + 1) - begin};
    }
    case Kind::kMegatron:
      return {load<std::int64_t>(second_, i) >> shift_, load<std::int32_t>(first_, i)};
    case Kind::kMegatronDocuments:
      break;
  }
  const std::int64_t begin = sequence_begin(load<std::int64_t>(first_, i));
  return {begin, sequence_begin(load<std::int64_t>(first_, i + 1)) - begin};
}

void Extents::expect(std::int64_t i) const {
  const auto fetch = [i](const std::byte* base, std::int64_t size) {
    __builtin_prefetch(base + i * size);
  };
  switch (kind_) {
    case Kind::kUniform:
      return;
    case Kind::kOffsets32:
      return fetch(first_, 4);
    case Kind::kOffsets64:
      return fetch(first_, 8);
    case Kind::kMegatronDocuments:
      fetch(first_, 8);
      if (num_sequences_ == count_) fetch(second_, 8);  // each document is one, most likely
      return;
    case Kind::kMegatron:
      fetch(first_, 4);
      fetch(second_, 8);
  }
}

void Extents::lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  switch (kind_) {
    case Kind::kUniform:
      for (std::int64_t k = 0; k < count; ++k) out[k] = length_;
      return;
    case Kind::kOffsets32:
      for (std::int64_t k = 0; k < count; ++k) {
        out[k] = load<std::int32_t>(first_, first + k + 1) - load<std::int32_t>(first_, first + k);
      }
      return;
    case Kind::kOffsets64:
      for (std::int64_t k = 0; k < count; ++k) {
        out[k] = load<std::int64_t>(first_, first + k + 1) - load<std::int64_t>(first_, first + k);
      }
      return;
    case Kind::kMegatron:
      for (std::int64_t k = 0; k < count; ++k) out[k] = load<std::int32_t>(first_, first + k);
      return;
    case Kind::kMegatronDocuments:
      break;
  }
  if (count == 0) return;
  std::int64_t begin = sequence_begin(load<std::int64_t>(first_, first));
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t end = sequence_begin(load<std::int64_t>(first_, first + k + 1));
    out[k] = end - begin;
    begin = end;
  }
}

std::int64_t Extents::num_tokens() const {
  if (count_ == 0) return 0;
  const Extent last = (*this)[count_ - 1];
  return last.begin + last.length - (*this)[0].begin;
}

std::int64_t Extents::sequence_start(std::int64_t i) const {
  return kind_ == Kind::kMegatronDocuments ? load<std::int64_t>(first_, i) : i;
}

void Extents::sequence_lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  if (kind_ != Kind::kMegatronDocuments) return lengths(first, count, out);
  for (std::int64_t k = 0; k < count; ++k) {
    out[k] = sequence_begin(first + k + 1) - sequence_begin(first + k);
  }
}

}  // namespace brimful
