// A corpus: named sources, each a list of token stores. Immutable once built and shared by all
// threads. Every input format becomes `values + extents`: where document i begins in the values and
// how many tokens it has. Positions and lengths count tokens; document numbers run over the whole
// corpus, source after source, store after store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "corpus/shared_file.hpp"

namespace brimful {

struct Extent {
  std::int64_t begin;   // first token, counted from the store's first value
  std::int64_t length;  // tokens
};

// Extents of n units read in place from memory that need not be aligned; never a copy.
class Extents {
 public:
  // All values are cut into units of `length` tokens (a matrix of rows; one document).
  static Extents uniform(std::int64_t count, std::int64_t length);
  // count + 1 ascending offsets in tokens; unit i is [offsets[i], offsets[i+1]).
  static Extents offsets32(std::int64_t count, const void* offsets);
  static Extents offsets64(std::int64_t count, const void* offsets);
  // Sequences of a Megatron index: int32 lengths in tokens, int64 pointers in bytes.
  static Extents megatron(std::int64_t count, const void* lengths, const void* pointers,
                          std::size_t item_size);
  // Documents of a Megatron index: `documents` holds count + 1 int64 numbers of sequences.
  static Extents megatron_documents(std::int64_t count, const void* documents,
                                    std::int64_t num_sequences, const void* pointers,
                                    std::size_t item_size, std::int64_t num_tokens);

  std::int64_t size() const { return count_; }
  Extent operator[](std::int64_t i) const;
  // Asks for the memory that unit i is read from, which is somewhere else for every one drawn.
  void expect(std::int64_t i) const;
  // Lengths of units first, first + 1, ..., written to out[0..count).
  void lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const;
  // Tokens of all units together: they lie end to end.
  std::int64_t num_tokens() const;
  // Number of the first sequence of unit i; that of unit size() is the number of sequences. Units
  // have one sequence each, but for documents of an index with two levels.
  std::int64_t sequence_start(std::int64_t i) const;
  // Lengths of sequences first, first + 1, ..., written to out[0..count).
  void sequence_lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const;

 private:
  std::int64_t sequence_begin(std::int64_t s) const;

  enum class Kind : std::uint8_t {
    kUniform,
    kOffsets32,
    kOffsets64,
    kMegatron,
    kMegatronDocuments
  };
  Kind kind_ = Kind::kUniform;
  std::int64_t count_ = 0;
  std::int64_t length_ = 0;            // kUniform: tokens a unit; kMegatronDocuments: tokens in all
  const std::byte* first_ = nullptr;   // offsets, lengths or document numbers
  const std::byte* second_ = nullptr;  // pointers
  std::int64_t num_sequences_ = 0;
  int shift_ = 0;  // bytes >> shift_ = tokens
};

// One file (or buffer) of tokens. Owners and files keep every pointer valid.
struct TokenStore {
  std::string name;  // path or description, for messages
  std::vector<std::shared_ptr<const void>> owners;
  std::shared_ptr<SharedFile> file;  // of the tokens; null in memory
  std::int64_t file_begin = 0;       // bytes of it before the first token
  std::shared_ptr<SharedFile> index_file;
  std::shared_ptr<SharedFile> loss_file;
  const std::byte* values = nullptr;  // null: none, or a file that is mapped on demand
  TokenType type = TokenType::kU16;
  std::int64_t num_tokens = 0;
  Extents documents;
  const std::uint8_t* loss_mask = nullptr;  // [num_tokens], 1 = trained; null: every token is
  const std::byte* effective = nullptr;     // int64 [documents], unaligned: tokens with a label
                                            // when the document is delivered whole; may be null
  std::function<void()> check_index;  // that the index is as it was checked at open; may be null

  // Where token `at` lies in the file.
  std::int64_t byte_of(std::int64_t at) const {
    return file_begin + at * static_cast<std::int64_t>(item_size(type));
  }
};

// Tokens in place, as they are stored, for as long as it lives.
struct TokenView {
  const std::byte* data = nullptr;
  std::shared_ptr<const void> keep;
};
// From token `first` to the end. Throws ReadError where the file cannot be mapped again.
TokenView view_tokens(const TokenStore& store, std::int64_t first);

// Row maps of Hugging Face datasets: document i of the source is unit map[i] of its stores.
struct RowMap {
  std::shared_ptr<const void> owner;
  const std::int64_t* rows = nullptr;
  std::int64_t count = 0;
};

struct Source {
  std::string name;
  std::vector<TokenStore> stores;
  RowMap rows;  // rows.rows == nullptr: as stored
};

struct DocumentRef {
  const TokenStore* store;
  std::int64_t local;  // unit in the store
  Extent extent;
};

class Corpus {
 public:
  // Throws FormatError for a row map out of range, PlanError for a source without a name.
  explicit Corpus(std::vector<Source> sources);

  std::int64_t num_documents() const { return source_starts_.back(); }
  std::int64_t num_tokens() const { return num_tokens_; }
  int num_sources() const { return static_cast<int>(sources_.size()); }
  const Source& source(int s) const { return sources_[static_cast<std::size_t>(s)]; }

  // First document of source s; s == num_sources() gives the end.
  std::int64_t source_start(int s) const { return source_starts_[static_cast<std::size_t>(s)]; }
  std::int64_t source_tokens(int s) const { return source_tokens_[static_cast<std::size_t>(s)]; }
  int source_of(std::int64_t document) const;

  // Throws ReadError where the index names tokens that are not there: it has changed since it was
  // opened.
  DocumentRef locate(std::int64_t document) const;
  // This document is to be located soon: what that reads is on its way meanwhile.
  void expect(std::int64_t document) const;
  // The same for callers that hand the document out: throws ReadError where the index or the ends
  // of the document cannot be read any more.
  DocumentRef locate_readable(std::int64_t document) const;
  // Call after documents were located, as TokenReader::copied() and check_files(): looks whether
  // the indices are what they were, those of a few stores and of documents that now look empty.
  void check_indices(std::span<const DocumentRef> refs) const;
  // After a guarded read of the index of this document failed.
  [[noreturn]] void throw_unreadable_index(std::int64_t document) const;
  std::int64_t length(std::int64_t document) const { return locate(document).extent.length; }
  // Lengths in tokens of documents first, first + 1, ..., written to out[0..count). Throws
  // ReadError where an index cannot be read any more.
  void lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const;
  // A 64-bit hash of the lengths of source s, in order: part of the fingerprint of a state.
  std::uint64_t lengths_hash(int s) const;
  // A 64-bit hash of the name, the number and the lengths of the documents of source s.
  std::uint64_t source_hash(int s) const;

  // Throws ReadError where a file of tokens or loss masks that stays open is known to have been
  // written to since it was opened. Those beyond the caps are compared whenever they are opened.
  void check_open_files() const;
  // Takes repaired files in place of those that failed (SharedFile::renew), and says how often that
  // was done to files of this corpus, by whomever: others may have the same files open. Throws
  // ReadError or FormatError where one is not repaired.
  std::int64_t renew_files() const;
  // Files that the corpus reads, and how often they were opened again.
  struct FileCounts {
    std::int64_t opens = 0;
    std::int64_t reopens = 0;
  };
  FileCounts file_counts() const;

 private:
  void read_lengths(std::int64_t first, std::int64_t count, std::int64_t* out) const;
  template <class Visit>
  void visit_files(const Visit& visit) const;
  static std::int64_t mapped_tokens(const Source& source, const std::vector<std::int64_t>& starts);

  std::vector<Source> sources_;
  std::vector<std::int64_t> source_starts_;              // [sources + 1]
  std::vector<std::vector<std::int64_t>> store_starts_;  // per source, in units: [stores + 1]
  std::vector<std::int64_t> source_tokens_;
  std::int64_t num_tokens_ = 0;
};

}  // namespace brimful
