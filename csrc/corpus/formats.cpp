// Token stores over buffers in memory: values and offsets.
#include "corpus/formats.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/lane_hash.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

// Offsets ascend and stay inside the values; the first bad one is named.
template <class Offset>
void check_offsets(const std::string& name, const Offset* offsets, std::int64_t count,
                   std::int64_t num_tokens) {
  std::int64_t previous = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t offset = offsets[i];
    if (offset < previous || offset > num_tokens) {
      throw FormatError(name + ": offset " + std::to_string(i) + " is " + std::to_string(offset) +
                        ", expected " + std::to_string(previous) + " to " +
                        std::to_string(num_tokens) +
                        " (offsets ascend and stay inside the tokens)");
    }
    previous = offset;
  }
}

// Offsets that cut all tokens of a store into documents.
void check_cuts(const std::string& name, std::int64_t num_tokens, const std::int64_t* offsets,
                std::int64_t count) {
  check_offsets(name, offsets, count, num_tokens);
  if (count < 1 || offsets[0] != 0 || offsets[count - 1] != num_tokens) {
    throw FormatError(name + ": the offsets of its documents do not go from 0 to its " +
                      std::to_string(num_tokens) + " tokens");
  }
}

}  // namespace

TokenStore store_of(const FileName& name, std::shared_ptr<SharedFile> file, std::int64_t begin,
                    TokenType type) {
  TokenStore store;
  store.name = name.text;
  store.file_begin = begin;
  if (file->data() != nullptr) store.values = file->data() + begin;
  store.type = type;
  store.num_tokens = (file->size() - begin) / static_cast<std::int64_t>(item_size(type));
  store.file = std::move(file);
  return store;
}

void check_declared(const FileName& name, TokenType found, std::optional<TokenType> declared) {
  if (!declared || *declared == found) return;
  throw FormatError(name.text + ": holds " + std::string(type_name(found)) + ", but dtype=" +
                    std::string(type_name(*declared)) + " was declared; leave dtype out");
}

TokenStore open_lists(std::string name, const Buffer& values, TokenType type, const Buffer& offsets,
                      std::size_t offset_size, const Buffer& loss_mask) {
  if (offsets.count < 1) {
    throw FormatError(name + ": no offsets; n units have n + 1 of them");
  }
  TokenStore store;
  store.values = static_cast<const std::byte*>(values.data);
  store.type = type;
  store.num_tokens = values.count;
  store.owners = {values.owner, offsets.owner};
  if (offset_size == 4) {
    check_offsets(name, static_cast<const std::int32_t*>(offsets.data), offsets.count,
                  values.count);
    store.documents = Extents::offsets32(offsets.count - 1, offsets.data);
  } else {
    check_offsets(name, static_cast<const std::int64_t*>(offsets.data), offsets.count,
                  values.count);
    store.documents = Extents::offsets64(offsets.count - 1, offsets.data);
  }
  if (loss_mask.data != nullptr) {
    if (loss_mask.count != values.count) {
      throw FormatError(name + ": the loss mask has " + std::to_string(loss_mask.count) +
                        " entries for " + std::to_string(values.count) + " tokens");
    }
    store.loss_mask = static_cast<const std::uint8_t*>(loss_mask.data);
    store.owners.push_back(loss_mask.owner);
  }
  store.name = std::move(name);
  return store;
}

TokenStore with_offsets(TokenStore store, const Buffer& offsets) {
  check_cuts(store.name, store.num_tokens, static_cast<const std::int64_t*>(offsets.data),
             offsets.count);
  store.owners.push_back(offsets.owner);
  store.documents = Extents::offsets64(offsets.count - 1, offsets.data);
  return store;
}

TokenStore with_cached_offsets(TokenStore store, const FileName& name, std::int64_t begin,
                               std::uint64_t entries, std::uint64_t hash) {
  constexpr std::int64_t kSize = sizeof(std::int64_t);
  store.index_file = SharedFile::open(name, SharedFile::Kind::kIndex);
  const std::int64_t size = store.index_file->size();
  const std::int64_t count = (size - begin) / kSize;
  if (begin < 0 || begin % kSize != 0 || size < begin || (size - begin) % kSize != 0 || count < 1 ||
      entries != static_cast<std::uint64_t>(count)) {
    throw FormatError(name.text + ": " + std::to_string(size) + " bytes do not hold " +
                      std::to_string(entries) + " offsets from byte " + std::to_string(begin));
  }
  const auto* offsets = reinterpret_cast<const std::int64_t*>(store.index_file->data() + begin);
  const std::string tokens = store.name;
  const std::int64_t num_tokens = store.num_tokens;
  store.documents = Extents::offsets64(count - 1, offsets);
  store.check_index = [name, file = store.index_file, tokens, num_tokens, offsets, count, hash] {
    bool same = false;
    const bool read = read_guarded([&] {
      LaneHash found;
      found.update(offsets, static_cast<std::size_t>(count));
      same = found.finish() == hash;
      if (same) check_cuts(tokens, num_tokens, offsets, count);
    });
    if (!read) throw_read_error(*file);
    if (!same) throw FormatError(name.text + ": damaged");
  };
  store.check_index();
  return store;
}

}  // namespace brimful
