// The corpus: numbers the documents of all sources and finds them again.
#include "corpus/corpus.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/error.hpp"
#include "core/lane_hash.hpp"
#include "core/random.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

// Number of the part that holds `unit`: starts[p] <= unit < starts[p + 1]. Empty parts never match.
std::size_t part_of(const std::vector<std::int64_t>& starts, std::int64_t unit) {
  if (starts.size() == 2) return 0;
  return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), unit) -
                                  starts.begin()) -
         1;
}

[[noreturn]] void throw_index_error(const TokenStore& store, std::int64_t unit,
                                    const Extent& extent) {
  throw ReadError("reading " + store.name + ": its index names " + std::to_string(extent.length) +
                  " tokens from token " + std::to_string(extent.begin) + " for document " +
                  std::to_string(unit) + " of the file, which has " +
                  std::to_string(store.num_tokens) +
                  "; the index has changed since it was opened. Restore it and open it again");
}

}  // namespace

TokenView view_tokens(const TokenStore& store, std::int64_t first) {
  if (store.values != nullptr || store.file == nullptr) {
    const auto size = static_cast<std::int64_t>(item_size(store.type));
    return {store.values + first * size, store.file};
  }
  std::shared_ptr<const std::byte> all = store.file->map();
  const std::byte* data = all.get() + store.byte_of(first);
  return {data, std::move(all)};
}

Corpus::Corpus(std::vector<Source> sources) : sources_(std::move(sources)), source_starts_{0} {
  for (const Source& source : sources_) {
    if (source.name.empty()) {
      throw PlanError("source " + std::to_string(source_tokens_.size()) +
                      " has an empty name; exposure and states need one");
    }
    std::vector<std::int64_t> starts{0};
    std::int64_t tokens = 0;
    for (const TokenStore& store : source.stores) {
      starts.push_back(starts.back() + store.documents.size());
      if (!read_guarded([&] { tokens += store.documents.num_tokens(); })) throw_read_error(source);
      if (store.index_file != nullptr) store.index_file->check(0);
    }
    std::int64_t documents = starts.back();
    store_starts_.push_back(std::move(starts));
    if (source.rows.rows != nullptr) {
      documents = source.rows.count;
      const bool read = read_guarded([&] { tokens = mapped_tokens(source, store_starts_.back()); });
      if (!read) throw_read_error(source);
    }
    source_starts_.push_back(source_starts_.back() + documents);
    source_tokens_.push_back(tokens);
    num_tokens_ += tokens;
  }
}

// Checks the row map of a source and adds up the tokens of the units that it names.
std::int64_t Corpus::mapped_tokens(const Source& source, const std::vector<std::int64_t>& starts) {
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < source.rows.count; ++i) {
    const std::int64_t unit = source.rows.rows[i];
    if (unit < 0 || unit >= starts.back()) {
      throw FormatError(source.name + ": the row map names row " + std::to_string(unit) +
                        " in place " + std::to_string(i) + ", but there are " +
                        std::to_string(starts.back()) + " rows");
    }
    const std::size_t p = part_of(starts, unit);
    tokens += source.stores[p].documents[unit - starts[p]].length;
  }
  return tokens;
}

int Corpus::source_of(std::int64_t document) const {
  return static_cast<int>(part_of(source_starts_, document));
}

DocumentRef Corpus::locate(std::int64_t document) const {
  const std::size_t s = part_of(source_starts_, document);
  const Source& source = sources_[s];
  std::int64_t unit = document - source_starts_[s];
  if (source.rows.rows != nullptr) unit = source.rows.rows[unit];
  const std::size_t p = part_of(store_starts_[s], unit);
  const std::int64_t local = unit - store_starts_[s][p];
  const TokenStore& store = source.stores[p];
  const DocumentRef ref{&store, local, store.documents[local]};
  const auto& [begin, length] = ref.extent;
  if (begin < 0 || length < 0 || length > store.num_tokens || begin > store.num_tokens - length) {
    throw_index_error(store, local, ref.extent);
  }
  return ref;
}

void Corpus::expect(std::int64_t document) const {
  const std::size_t s = part_of(source_starts_, document);
  const Source& source = sources_[s];
  if (source.rows.rows != nullptr) return;  // a row must be read to know more
  const std::int64_t unit = document - source_starts_[s];
  const std::size_t p = part_of(store_starts_[s], unit);
  source.stores[p].documents.expect(unit - store_starts_[s][p]);
}

DocumentRef Corpus::locate_readable(std::int64_t document) const {
  DocumentRef ref{};
  if (!read_guarded([&] { ref = locate(document); })) throw_unreadable_index(document);
  if (ref.extent.length == 0) return ref;
  const auto size = static_cast<std::int64_t>(item_size(ref.store->type));
  const TokenView view = view_tokens(*ref.store, ref.extent.begin);
  const volatile std::byte* first = view.data;
  const volatile std::byte* last = first + ref.extent.length * size - 1;
  const auto read = [](const volatile std::byte* at) { static_cast<void>(*at); };
  if (!read_guarded([&] { read(first), read(last); })) {
    throw_read_error(*ref.store, ref.extent.begin);
  }
  return ref;
}

void Corpus::lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  if (!read_guarded([&] { read_lengths(first, count, out); })) throw_unreadable_index(first);
}

void Corpus::check_indices(std::span<const DocumentRef> refs) const {
  constexpr std::size_t kFew = 8;
  std::vector<const TokenStore*> checked;
  for (const DocumentRef& ref : refs) {
    SharedFile* file = ref.store->index_file.get();
    if (file == nullptr || (checked.size() >= kFew && ref.extent.length > 0)) continue;
    if (std::find(checked.begin(), checked.end(), ref.store) != checked.end()) continue;
    checked.push_back(ref.store);
    file->check(0);
  }
}

void Corpus::throw_unreadable_index(std::int64_t document) const {
  throw_read_error(source(source_of(document)));
}

void Corpus::read_lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  const std::int64_t end = first + count;
  while (first < end) {
    const std::size_t s = part_of(source_starts_, first);
    const std::int64_t source_end = std::min(end, source_starts_[s + 1]);
    const bool mapped = sources_[s].rows.rows != nullptr;
    while (first < source_end) {
      if (mapped) {
        *out++ = length(first++);
        continue;
      }
      const std::int64_t unit = first - source_starts_[s];
      const std::size_t p = part_of(store_starts_[s], unit);
      const std::int64_t n = std::min(source_end - first, store_starts_[s][p + 1] - unit);
      sources_[s].stores[p].documents.lengths(unit - store_starts_[s][p], n, out);
      first += n;
      out += n;
    }
  }
}

std::uint64_t Corpus::lengths_hash(int s) const {
  constexpr std::int64_t kBlock = 2048;
  static_assert(kBlock % LaneHash::kLanes == 0);
  std::array<std::int64_t, kBlock> block;
  LaneHash result;
  for (std::int64_t first = source_start(s); first < source_start(s + 1); first += kBlock) {
    const std::int64_t n = std::min(kBlock, source_start(s + 1) - first);
    lengths(first, n, block.data());
    result.update(block.data(), static_cast<std::size_t>(n));
  }
  // Behind a cut an index reads as zeros, up to the end of the page.
  for (const TokenStore& store : source(s).stores) {
    if (store.index_file != nullptr) store.index_file->check(0);
  }
  return result.finish();
}

template <class Visit>
void Corpus::visit_files(const Visit& visit) const {
  for (const Source& source : sources_) {
    for (const TokenStore& store : source.stores) {
      for (const auto* file : {&store.file, &store.index_file, &store.loss_file}) {
        if (*file != nullptr) visit(store, **file);
      }
    }
  }
}

void Corpus::check_open_files() const {
  visit_files([](const TokenStore& store, SharedFile& file) {
    if (&file != store.index_file.get() && file.stays_open()) file.check(0);
  });
}

std::int64_t Corpus::renew_files() const {
  std::int64_t renewals = 0;
  visit_files([&](const TokenStore& store, SharedFile& file) {
    const bool is_index = &file == store.index_file.get();
    file.renew(is_index ? store.check_index : nullptr);
    renewals += file.renewals();
  });
  return renewals;
}

Corpus::FileCounts Corpus::file_counts() const {
  std::unordered_set<const SharedFile*> seen;
  FileCounts counts;
  visit_files([&](const TokenStore&, const SharedFile& file) {
    if (!seen.insert(&file).second) return;
    counts.opens += 1;
    counts.reopens += file.reopens();
  });
  return counts;
}

std::uint64_t Corpus::source_hash(int s) const {
  std::uint64_t result = derive_key(lengths_hash(s), source_start(s + 1) - source_start(s));
  for (const char c : source(s).name) result = hash(result, static_cast<unsigned char>(c));
  return result;
}

}  // namespace brimful
