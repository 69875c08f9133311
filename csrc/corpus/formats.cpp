// Token stores over buffers in memory: values and offsets.
#include "corpus/formats.hpp"

#include <string>
#include <utility>

#include "core/error.hpp"

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

}  // namespace

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
  const auto* ends = static_cast<const std::int64_t*>(offsets.data);
  check_offsets(store.name, ends, offsets.count, store.num_tokens);
  if (offsets.count < 1 || ends[0] != 0 || ends[offsets.count - 1] != store.num_tokens) {
    throw FormatError(store.name + ": the offsets of its documents do not go from 0 to its " +
                      std::to_string(store.num_tokens) + " tokens");
  }
  store.owners.push_back(offsets.owner);
  store.documents = Extents::offsets64(offsets.count - 1, ends);
  return store;
}

}  // namespace brimful
