// Where the bytes of a batch come from while it is filled: in place from mapped files, or by reads
// into memory of its own; and with checksums, where these are asked for. One reader a batch and
// thread. Tokens stay valid until tokens() is called again, a loss mask until the second call of
// loss_mask() from there.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/columns.hpp"
#include "corpus/block_checks.hpp"
#include "corpus/corpus.hpp"

namespace brimful {

enum class Io : std::uint8_t { kMmap, kPread };
std::optional<Io> parse_io(std::string_view name);

struct ReadConfig {
  Io io = Io::kMmap;
  std::shared_ptr<BlockChecks> checks;  // null: nothing is compared
};

class TokenReader {
 public:
  explicit TokenReader(const ReadConfig& config) : config_(config) {}

  // Where these tokens lie, which are wanted next: so they are on their way from memory while
  // others are copied. Nothing where they are not in memory.
  columns::Ahead expect(const TokenStore& store, std::int64_t first, std::int64_t count) const {
    if (config_.io != Io::kMmap || store.values == nullptr) return {};
    const std::size_t size = item_size(store.type);
    return {store.values + static_cast<std::size_t>(first) * size,
            static_cast<std::size_t>(count) * size};
  }
  // Tokens first, ..., first + count - 1 of a store, as they are stored.
  const std::byte* tokens(const TokenStore& store, std::int64_t first, std::int64_t count);
  // Their loss mask; null where the store has none.
  const std::uint8_t* loss_mask(const TokenStore& store, std::int64_t first, std::int64_t count);

  // Time that reads and comparisons with checksums took so far. What mapped files cost otherwise is
  // in the copy.
  std::chrono::nanoseconds read_time() const { return read_time_; }

  // Call when a piece has been copied. Behind the end of a file that was cut, the rest of the page
  // reads as zeros and raises no signal, so a file whose last token may be such is suspect; so does
  // what was cut and grew again, by a read too.
  void copied(const TokenStore& store, std::int64_t first, std::int64_t count,
              std::int64_t last_token);
  // Makes check_files() look at the file of this token, and at that of its loss mask.
  void suspect(const TokenStore& store, std::int64_t token);
  // Call when a batch has been copied: looks whether suspects are what they were, and others of
  // the batch, as many as take about a hundredth of this thread's time. `piece_at(i)` gives store
  // and first token of piece i < count; a tail has no store.
  template <class PieceAt>
  void check_files(std::size_t count, const PieceAt& piece_at);

 private:
  struct Suspect {
    const TokenStore* store;
    std::int64_t token;
  };
  const std::byte* read(const TokenStore& store, std::int64_t begin, std::int64_t end,
                        std::vector<std::byte>& memory);
  void check_blocks(const TokenStore& store, std::int64_t begin, std::int64_t end);
  // Calls read() and adds the time that takes.
  template <class F>
  void timed(const F& read);
  // Whether tokens before `end` may be the rest of what a cut has left of them.
  bool may_be_cut(const TokenStore& store, std::int64_t end, std::int64_t last_token) const;
  static std::size_t checks_due();
  void check_suspects();

  const ReadConfig& config_;
  std::chrono::nanoseconds read_time_{0};
  std::shared_ptr<SharedFile> on_demand_;  // the file that `map_` is of
  std::shared_ptr<const std::byte> map_;
  std::vector<Suspect> suspects_;
  std::vector<std::byte> tokens_;
  std::vector<std::byte> block_;
  std::array<std::vector<std::uint8_t>, 2> masks_;  // in turn
};

template <class PieceAt>
void TokenReader::check_files(std::size_t count, const PieceAt& piece_at) {
  static thread_local std::size_t turn = 0;  // not always the first piece of a batch
  for (std::size_t due = std::min(checks_due(), count); due > 0; --due) {
    const auto [store, first] = piece_at(turn++ % count);
    if (store != nullptr) suspect(*store, first);
  }
  check_suspects();
}

}  // namespace brimful
