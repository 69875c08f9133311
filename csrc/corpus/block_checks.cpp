#include "corpus/block_checks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/xxh3.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

constexpr std::string_view kAdvice = "; copy the file here again, or write the shards again";

void check_whole(SharedFile& file, std::uint64_t expected) {
  std::uint64_t found = 0;
  const auto size = static_cast<std::size_t>(file.size());
  if (!read_guarded([&] { found = xxh3(file.data(), size); })) throw_read_error(file);
  if (found == expected) return;
  file.mark_failed();
  throw ReadError(file.text() + ": its checksum is not the one that was written with it" +
                  std::string(kAdvice));
}

// The first of n units that `is_behind` holds for; it does for all that follow.
template <class IsBehind>
std::int64_t first_unit(std::int64_t n, const IsBehind& is_behind) {
  std::int64_t low = 0;
  while (low < n) {
    const std::int64_t middle = low + (n - low) / 2;
    if (is_behind(middle)) {
      n = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

BlockChecks::BlockChecks(const Corpus& corpus, std::vector<StoreChecksums> checksums) {
  std::size_t at = 0;
  for (int s = 0; s < corpus.num_sources(); ++s) {
    std::int64_t first_document = corpus.source_start(s);
    for (const TokenStore& store : corpus.source(s).stores) {
      if (at == checksums.size() || store.file == nullptr) {
        throw FormatError(store.name + ": no checksums");
      }
      StoreChecksums& expected = checksums[at++];
      const auto blocks = static_cast<std::int64_t>(expected.blocks.size());
      if (blocks != (store.file->size() + kBlockBytes - 1) / kBlockBytes) {
        throw FormatError(store.name + ": " + std::to_string(blocks) + " checksums, but it has " +
                          std::to_string(store.file->size()) + " bytes; expected one a MiB");
      }
      if (store.index_file != nullptr) check_whole(*store.index_file, expected.index);
      if (store.loss_file != nullptr) {
        if (!expected.loss) throw FormatError(store.name + ": no checksum of its loss mask");
        check_whole(*store.loss_file, *expected.loss);
      }
      Blocks& known = blocks_[&store];
      known.renewals = store.file->renewals();
      known.checked = std::vector<std::atomic<std::uint64_t>>((expected.blocks.size() + 63) / 64);
      known.hashes = std::move(expected.blocks);
      known.first_document = first_document;
      first_document += store.documents.size();
    }
  }
}

std::optional<BlockChecks::Unchecked> BlockChecks::next_unchecked(const TokenStore& store,
                                                                  std::int64_t begin,
                                                                  std::int64_t end) {
  Blocks& known = blocks_.at(&store);
  const std::int64_t renewals = store.file->renewals();
  if (known.renewals.load(std::memory_order_acquire) < renewals) {
    const std::lock_guard lock(mutex_);
    if (known.renewals < renewals) {
      for (auto& word : known.checked) word = 0;
      known.renewals = renewals;
    }
  }
  for (std::int64_t block = begin / kBlockBytes; block * kBlockBytes < end; ++block) {
    const auto& word = known.checked[static_cast<std::size_t>(block / 64)];
    if ((word.load(std::memory_order_relaxed) >> (block % 64) & 1) == 0) {
      return Unchecked{block, renewals};
    }
  }
  return std::nullopt;
}

std::int64_t BlockChecks::size_of(const TokenStore& store, std::int64_t block) {
  return std::min(kBlockBytes, store.file->size() - begin_of(block));
}

void BlockChecks::check(const TokenStore& store, const Unchecked& unchecked,
                        const std::byte* data) {
  Blocks& known = blocks_.at(&store);
  const std::int64_t block = unchecked.block;
  const std::uint64_t found = xxh3(data, static_cast<std::size_t>(size_of(store, block)));
  if (found != known.hashes[static_cast<std::size_t>(block)]) throw_bad_block(store, block);
  const std::lock_guard lock(mutex_);
  if (known.renewals != unchecked.renewals) return;  // of a file that is another one by now
  known.checked[static_cast<std::size_t>(block / 64)] |= std::uint64_t{1} << (block % 64);
}

void BlockChecks::throw_bad_block(const TokenStore& store, std::int64_t block) const {
  const std::int64_t begin = begin_of(block);
  const std::int64_t end = begin + size_of(store, block);
  const std::int64_t n = store.documents.size();
  const auto end_of = [&](std::int64_t i) {
    const Extent extent = store.documents[i];
    return store.byte_of(extent.begin + extent.length);
  };
  const std::int64_t first = first_unit(n, [&](std::int64_t i) { return end_of(i) > begin; });
  const std::int64_t last =
      first_unit(n, [&](std::int64_t i) { return store.byte_of(store.documents[i].begin) >= end; });
  const std::int64_t number = blocks_.at(&store).first_document;
  store.file->mark_failed();
  throw ReadError(
      "reading " + store.name + " at byte " + std::to_string(begin) + ": block " +
      std::to_string(block) + " (" + std::to_string(end - begin) +
      " bytes) is not what was written, by its checksum; it holds tokens of documents " +
      std::to_string(number + first) + " to " + std::to_string(number + last - 1) +
      std::string(kAdvice));
}

}  // namespace brimful
