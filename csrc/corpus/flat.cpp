// Files that hold one stretch of tokens: llm.c (a header of 256 int32) and headerless ones.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "corpus/formats.hpp"

namespace brimful {
namespace {

constexpr std::int64_t kHeaderBytes = 1024;

struct Generation {
  std::int32_t magic;
  std::int32_t version;
  TokenType type;
};
constexpr std::array<Generation, 2> kGenerations{{
    {20240520, 1, TokenType::kU16},
    {20240801, 7, TokenType::kU32},
}};

TokenStore flat_store(const FileName& name, std::shared_ptr<SharedFile> file, std::int64_t begin,
                      TokenType type) {
  TokenStore store = store_of(name, std::move(file), begin, type);
  store.documents = Extents::uniform(store.num_tokens > 0 ? 1 : 0, store.num_tokens);
  return store;
}

}  // namespace

TokenStore open_llmc(const FileName& name, std::optional<TokenType> declared) {
  const auto file = SharedFile::open(name, SharedFile::Kind::kTokens);
  if (file->size() < kHeaderBytes) {
    throw FormatError(name.text + ": " + std::to_string(file->size()) +
                      " bytes; an llm.c file has a header of 1024");
  }
  std::array<std::int32_t, 3> header;
  file->read(0, sizeof(header), header.data());
  const auto [magic, version, count] = header;
  const auto* generation = std::find_if(kGenerations.begin(), kGenerations.end(),
                                        [&](const Generation& g) { return g.magic == magic; });
  if (generation == kGenerations.end() || generation->version != version) {
    throw FormatError(name.text + ": magic " + std::to_string(magic) + " version " +
                      std::to_string(version) +
                      "; expected 20240520 version 1 (uint16) or 20240801 version 7 (uint32)");
  }
  const TokenType type = generation->type;
  const auto size = static_cast<std::int64_t>(item_size(type));
  if (count <= 0) {
    throw FormatError(
        name.text + ": the header counts " + std::to_string(count) +
        " tokens, expected 1 or more; by its size the file holds " +
        std::to_string((file->size() - kHeaderBytes) / size) +
        " (the header's 32 bits cannot count beyond 2147483647: write several files)");
  }
  if (file->size() != kHeaderBytes + count * size) {
    throw FormatError(name.text + ": " + std::to_string(file->size()) + " bytes, expected " +
                      std::to_string(kHeaderBytes + count * size) + " for " +
                      std::to_string(count) + " tokens of " + std::string(type_name(type)));
  }
  check_declared(name, type, declared);
  return flat_store(name, file, kHeaderBytes, type);
}

TokenStore open_raw(const FileName& name, TokenType type) {
  const auto file = SharedFile::open(name, SharedFile::Kind::kTokens);
  if (file->size() % static_cast<std::int64_t>(item_size(type)) != 0) {
    throw FormatError(name.text + ": " + std::to_string(file->size()) +
                      " bytes are not a whole number of " + std::string(type_name(type)) +
                      " tokens; the file is truncated or of another dtype");
  }
  return flat_store(name, file, 0, type);
}

}  // namespace brimful
