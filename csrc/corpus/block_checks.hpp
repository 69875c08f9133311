// Checksums of a corpus's files: those of its tokens are compared block by block, each block once,
// when it is touched first, and anew in a file that was taken in place of one that failed; what
// lies beside the tokens is compared whole, at once.
//
// Threads: ask from any thread, without a lock but for a block to compare. Two that touch a block
// at the same time both compare it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "corpus/corpus.hpp"

namespace brimful {

// XXH3 of the files of one store.
struct StoreChecksums {
  std::vector<std::uint64_t> blocks;  // of the tokens, one a kBlockBytes; the last may be shorter
  std::uint64_t index = 0;
  std::optional<std::uint64_t> loss;
};

class BlockChecks {
 public:
  static constexpr std::int64_t kBlockBytes = 1 << 20;

  // `checksums` of the stores of all sources, in order. Throws FormatError where they do not fit a
  // file, ReadError where an index or a loss mask is not what was written.
  BlockChecks(const Corpus& corpus, std::vector<StoreChecksums> checksums);

  // A block to compare, and SharedFile::renewals() when it was found to be one.
  struct Unchecked {
    std::int64_t block;
    std::int64_t renewals;
  };
  // The first block from that of byte `begin` up to that of byte `end - 1` which is not compared
  // yet, if any.
  std::optional<Unchecked> next_unchecked(const TokenStore& store, std::int64_t begin,
                                          std::int64_t end);
  // Where a block lies in the file of its store, and how many bytes it has.
  static std::int64_t begin_of(std::int64_t block) { return block * kBlockBytes; }
  static std::int64_t size_of(const TokenStore& store, std::int64_t block);
  // Compares a block; `data` are its bytes. Throws ReadError, with the documents that it holds
  // tokens of, where they are not what was written. Owns nothing until then.
  void check(const TokenStore& store, const Unchecked& unchecked, const std::byte* data);

 private:
  struct Blocks {
    std::vector<std::uint64_t> hashes;
    std::vector<std::atomic<std::uint64_t>> checked;  // a bit a block
    std::atomic<std::int64_t> renewals = 0;           // of the file that these bits are about
    std::int64_t first_document = 0;                  // of the store, in the corpus
  };
  [[noreturn]] void throw_bad_block(const TokenStore& store, std::int64_t block) const;

  std::mutex mutex_;  // held while bits change
  std::unordered_map<const TokenStore*, Blocks> blocks_;
};

}  // namespace brimful
