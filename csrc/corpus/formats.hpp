// Formats: functions that turn files and buffers into token stores. Everything that can be checked
// is checked here, at memory speed; what is wrong throws FormatError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

// Tokens in memory that somebody else owns.
struct Buffer {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  std::int64_t count = 0;  // items, not bytes
};

// Per unit: tokens that get a label when it is delivered whole, that is all masked-in ones but the
// first.
std::vector<std::int64_t> count_effective(const Extents& documents, const std::uint8_t* loss_mask);

// Units that lie between `offsets` (ascending, in tokens, 4 or 8 bytes each): the layout of an
// Arrow list column, which may be a slice of a longer one. `loss_mask` holds one byte a token, or
// is empty.
TokenStore open_lists(std::string name, const Buffer& values, TokenType type, const Buffer& offsets,
                      std::size_t offset_size, const Buffer& loss_mask);

}  // namespace brimful
