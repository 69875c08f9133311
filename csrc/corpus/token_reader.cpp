#include "corpus/token_reader.hpp"

#include <chrono>
#include <utility>

namespace brimful {
namespace {

// Asking the system about a file takes about a microsecond.
constexpr std::chrono::microseconds kBetweenChecks{100};

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
  // A cut within a token leaves its lower bytes.
  if (last_token >= 0 && last_token < 256) note(store, first, count);
}

std::size_t TokenReader::checks_due() {
  using Clock = std::chrono::steady_clock;
  static thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  const auto due = static_cast<std::size_t>((now - last) / kBetweenChecks);
  if (due > 0) last = now;
  return due;
}

void TokenReader::note(const TokenStore& store, std::int64_t first, std::int64_t count) {
  // Few stores alternate, so that one of the last entries is theirs.
  constexpr std::size_t kLast = 8;
  for (std::size_t i = noted_.size(); i > 0 && i + kLast > noted_.size(); --i) {
    Read& read = noted_[i - 1];
    if (read.store != &store) continue;
    read.first = std::min(read.first, first);
    read.end = std::max(read.end, first + count);
    return;
  }
  noted_.push_back({&store, first, first + count});
}

void TokenReader::check_noted() {
  for (const auto& [store, first, end] : noted_) {
    if (store->file != nullptr) store->file->check(store->byte_of(first), store->byte_of(end));
    if (store->loss_file != nullptr) store->loss_file->check(first, end);
  }
  noted_.clear();
}

}  // namespace brimful
