// Formats: functions that turn files and buffers into token stores. Everything that can be checked
// is checked here, at memory speed; what is wrong throws FormatError. Where `declared` is given, a
// file that says otherwise about its own dtype is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "corpus/corpus.hpp"
#include "corpus/shared_file.hpp"

namespace brimful {

enum class MegatronUnit : std::uint8_t { kDocuments, kSequences };
std::optional<MegatronUnit> parse_megatron_unit(std::string_view name);

// Megatron: tokens in `.bin`; an index with the dtype, the length in tokens and the byte offset of
// each sequence, and where each document begins among the sequences, in `.idx`.
// `loss` names a file that goes with them: a loss mask of one byte a token in .bin order, then the
// int64 count of effective tokens of each document.
TokenStore open_megatron(const FileName& bin, const FileName& idx,
                         const std::optional<FileName>& loss, MegatronUnit unit,
                         std::optional<TokenType> declared);

// llm.c: 256 int32 of header, which tells 16 from 32 bits and how many tokens follow. One unit.
TokenStore open_llmc(const FileName& name, std::optional<TokenType> declared);

// Nothing but tokens. One unit; none when the file is empty.
TokenStore open_raw(const FileName& name, TokenType type);

// numpy's .npy, versions 1 to 3: a vector is one unit (none when empty), a matrix one unit a row.
struct NpyFile {
  TokenStore store;
  bool matrix = false;
};
NpyFile open_npy(const FileName& name, std::optional<TokenType> declared);

// A store of the tokens that begin at byte `begin` of a file; its documents are still to be told.
TokenStore store_of(const FileName& name, std::shared_ptr<SharedFile> file, std::int64_t begin,
                    TokenType type);

// Throws FormatError where a file that names its own dtype was declared to be of another one.
void check_declared(const FileName& name, TokenType found, std::optional<TokenType> declared);

// Tokens in memory that somebody else owns.
struct Buffer {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  std::int64_t count = 0;  // items, not bytes
};

// Units that lie between `offsets` (ascending, in tokens, 4 or 8 bytes each): the layout of an
// Arrow list column, which may be a slice of a longer one. `loss_mask` holds one byte a token, or
// is empty.
TokenStore open_lists(std::string name, const Buffer& values, TokenType type, const Buffer& offsets,
                      std::size_t offset_size, const Buffer& loss_mask);

// The same tokens cut at other places: int64 `offsets` from 0 to the number of tokens.
TokenStore with_offsets(TokenStore store, const Buffer& offsets);
// The same by the `count` offsets that a file holds from byte `begin` on; `hash` is theirs
// (LaneHash of words), and another one is a FormatError.
TokenStore with_cached_offsets(TokenStore store, const FileName& name, std::int64_t begin,
                               std::uint64_t entries, std::uint64_t hash);

}  // namespace brimful
