#include "corpus/token_reader.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace brimful {
namespace {

// Asking the system about a file takes about a microsecond.
constexpr std::chrono::microseconds kBetweenChecks{100};

// The least that a page of a file has on Linux.
constexpr std::int64_t kPage = 4096;

}  // namespace

std::optional<Io> parse_io(std::string_view name) {
  if (name == "mmap") return Io::kMmap;
  if (name == "pread") return Io::kPread;
  return std::nullopt;
}

template <class F>
void TokenReader::timed(const F& read) {
  const auto begin = std::chrono::steady_clock::now();
  read();
  read_time_ += std::chrono::steady_clock::now() - begin;
}

const std::byte* TokenReader::tokens(const TokenStore& store, std::int64_t first,
                                     std::int64_t count) {
  const std::int64_t begin = store.byte_of(first);
  const std::int64_t end = store.byte_of(first + count);
  if (config_.checks != nullptr) check_blocks(store, begin, end);
  return read(store, begin, end, tokens_);
}

// Bytes begin, ..., end - 1 of the file of a store, or of its memory: in place, or in `memory`.
const std::byte* TokenReader::read(const TokenStore& store, std::int64_t begin, std::int64_t end,
                                   std::vector<std::byte>& memory) {
  if (config_.io == Io::kPread && store.file != nullptr) {
    const auto bytes = static_cast<std::size_t>(end - begin);
    if (memory.size() < bytes) memory.resize(bytes);
    timed([&] { store.file->read(begin, end - begin, memory.data()); });
    return memory.data();
  }
  if (store.values != nullptr) return store.values + (begin - store.file_begin);
  if (on_demand_ != store.file) {
    map_ = store.file->map();
    on_demand_ = store.file;
  }
  return map_.get() + begin;
}

void TokenReader::check_blocks(const TokenStore& store, std::int64_t begin, std::int64_t end) {
  while (const auto unchecked = config_.checks->next_unchecked(store, begin, end)) {
    const std::int64_t from = BlockChecks::begin_of(unchecked->block);
    const std::int64_t to = from + BlockChecks::size_of(store, unchecked->block);
    const std::byte* bytes = read(store, from, to, block_);
    timed([&] { config_.checks->check(store, *unchecked, bytes); });
  }
}

const std::uint8_t* TokenReader::loss_mask(const TokenStore& store, std::int64_t first,
                                           std::int64_t count) {
  if (store.loss_mask == nullptr) return nullptr;
  if (config_.io == Io::kMmap || store.loss_file == nullptr) return store.loss_mask + first;
  std::swap(masks_[0], masks_[1]);
  std::vector<std::uint8_t>& mask = masks_[0];
  if (mask.size() < static_cast<std::size_t>(count)) mask.resize(static_cast<std::size_t>(count));
  timed([&] { store.loss_file->read(first, count, mask.data()); });
  return mask.data();
}

void TokenReader::copied(const TokenStore& store, std::int64_t first, std::int64_t count,
                         std::int64_t last_token) {
  if (may_be_cut(store, first + count, last_token)) suspect(store, first);
}

// A cut within a token leaves its lower bytes, and zeros behind it up to the page's end. Of tokens
// of four bytes or more the highest is zero in nearly all, so there the one behind them decides.
bool TokenReader::may_be_cut(const TokenStore& store, std::int64_t end,
                             std::int64_t last_token) const {
  if (last_token >= 0 && last_token < 256) return true;
  const auto size = static_cast<std::int64_t>(item_size(store.type));
  if (size <= 2 || store.file == nullptr || last_token >> (8 * (size - 1)) != 0) return false;
  if (config_.io == Io::kPread || end == store.num_tokens) return true;
  const std::int64_t next = store.byte_of(end);
  if (next % kPage == 0) return true;
  const std::byte* at =
      store.values != nullptr ? store.values + (next - store.file_begin) : map_.get() + next;
  return std::all_of(at, at + size, [](std::byte byte) { return byte == std::byte{0}; });
}

std::size_t TokenReader::checks_due() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  const auto due = static_cast<std::size_t>((now - last) / kBetweenChecks);
  if (due > 0) last = now;
  return due;
}

void TokenReader::suspect(const TokenStore& store, std::int64_t token) {
  // Few stores alternate, so that one of the last entries is theirs.
  constexpr std::size_t kLast = 8;
  for (std::size_t i = suspects_.size(); i > 0 && i + kLast > suspects_.size(); --i) {
    if (suspects_[i - 1].store == &store) return;
  }
  suspects_.push_back({&store, token});
}

void TokenReader::check_suspects() {
  for (const auto& [store, token] : suspects_) {
    if (store->file != nullptr) store->file->check(store->byte_of(token));
    if (store->loss_file != nullptr) store->loss_file->check(token);
  }
  suspects_.clear();
}

}  // namespace brimful
