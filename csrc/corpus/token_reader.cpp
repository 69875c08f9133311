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

const std::byte* TokenReader::tokens(const TokenStore& store, std::int64_t first,
                                     std::int64_t count) {
  const std::size_t size = item_size(store.type);
  if (config_.io == Io::kPread && store.file != nullptr) {
    const std::size_t bytes = static_cast<std::size_t>(count) * size;
    if (tokens_.size() < bytes) tokens_.resize(bytes);
    store.file->read(store.byte_of(first), static_cast<std::int64_t>(bytes), tokens_.data());
    return tokens_.data();
  }
  if (store.values != nullptr) return store.values + static_cast<std::size_t>(first) * size;
  if (on_demand_ != store.file) {
    map_ = store.file->map();
    on_demand_ = store.file;
  }
  return map_.get() + store.byte_of(first);
}

const std::uint8_t* TokenReader::loss_mask(const TokenStore& store, std::int64_t first,
                                           std::int64_t count) {
  if (store.loss_mask == nullptr) return nullptr;
  if (config_.io == Io::kMmap || store.loss_file == nullptr) return store.loss_mask + first;
  std::swap(masks_[0], masks_[1]);
  std::vector<std::uint8_t>& mask = masks_[0];
  if (mask.size() < static_cast<std::size_t>(count)) mask.resize(static_cast<std::size_t>(count));
  store.loss_file->read(first, count, mask.data());
  return mask.data();
}

void TokenReader::copied(const TokenStore& store, std::int64_t first, std::int64_t count,
                         std::int64_t last_token) {
  // A cut within a token leaves its lower bytes.
  if (config_.io == Io::kMmap && last_token >= 0 && last_token < 256) note(store, first, count);
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
