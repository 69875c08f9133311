// Moves items between padded rows and tokens end to end, which a map from slots to tokens joins.
// Items are bytes of any type and shape, moved as words as wide as sizes and addresses allow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/grid.hpp"
#include "device/host_device.hpp"

namespace brimful::device {

struct alignas(16) Word16 {
  std::uint64_t halves[2];
};

struct ItemMove {
  const std::int32_t* token_of_slot = nullptr;  // [slots] -1 where there is none
  std::int64_t slots = 0;
  std::int64_t item_bytes = 0;
  bool to_rows = false;         // tokens -> rows, where slots without a token get `fill`; else rows
                                // -> tokens
  std::byte* rows = nullptr;    // [slots] items
  std::byte* tokens = nullptr;  // items; the map's numbers are in range
  Word16 fill{};                // what a slot without a token holds, over and over
};

// Bytes at .. at + sizeof(Word) - 1 of the fill; both sizes are powers of two. Shifts, for an index
// would make the device keep the fill in memory of its own.
template <class Word>
BRIMFUL_HD Word word_of(const Word16& fill, std::int64_t at) {
  if constexpr (sizeof(Word) == sizeof(Word16)) {
    return fill;
  } else {
    const std::uint64_t half = at % 16 < 8 ? fill.halves[0] : fill.halves[1];
    return static_cast<Word>(half >> (at % 8 * 8));
  }
}

// Moves word `word` of the item of slot `slot`.
template <class Word>
BRIMFUL_HD void move_word(const ItemMove& move, std::int64_t slot, std::int64_t word) {
  const std::int64_t words = move.item_bytes / static_cast<std::int64_t>(sizeof(Word));
  const std::int64_t token = move.token_of_slot[slot];
  Word* in_rows = reinterpret_cast<Word*>(move.rows) + slot * words + word;
  if (token >= 0) {
    Word* in_tokens = reinterpret_cast<Word*>(move.tokens) + token * words + word;
    if (move.to_rows) {
      *in_rows = *in_tokens;
    } else {
      *in_tokens = *in_rows;
    }
  } else if (move.to_rows) {
    *in_rows = word_of<Word>(move.fill, word * static_cast<std::int64_t>(sizeof(Word)));
  }
}

// A block moves the items of neighbouring slots: about kWords words, or one item that has more.
struct MoveKernel {
  static constexpr int kThreads = 256;
  static constexpr std::int64_t kWords = 1024;

  struct Shared {};

  ItemMove move;
  int word_bytes = 1;  // 1, 2, 4, 8 or 16; divides item_bytes and all addresses

  std::int64_t words() const { return move.item_bytes / word_bytes; }
  std::int64_t slots_of_block() const { return larger<std::int64_t>(kWords / words(), 1); }
  Grid grid() const {
    if (move.item_bytes == 0) return {};
    return {divide_up(move.slots, slots_of_block()), kThreads};
  }

  BRIMFUL_HD int phases() const { return 1; }

  BRIMFUL_HD void run(int /*phase*/, std::int64_t block, int thread, Shared& /*shared*/) const {
    switch (word_bytes) {
      case 16:
        return move_block<Word16>(block, thread);
      case 8:
        return move_block<std::uint64_t>(block, thread);
      case 4:
        return move_block<std::uint32_t>(block, thread);
      case 2:
        return move_block<std::uint16_t>(block, thread);
      default:
        return move_block<std::uint8_t>(block, thread);
    }
  }

 private:
  template <class Word>
  BRIMFUL_HD void move_block(std::int64_t block, int thread) const {
    const std::int64_t words = move.item_bytes / static_cast<std::int64_t>(sizeof(Word));
    const std::int64_t each = larger<std::int64_t>(kWords / words, 1);
    const std::int64_t first = block * each;
    const std::int64_t end = smaller(each, move.slots - first) * words;
    for (std::int64_t i = thread; i < end; i += kThreads) {
      const std::int64_t slot = i / words;
      move_word<Word>(move, first + slot, i - slot * words);
    }
  }
};

}  // namespace brimful::device
