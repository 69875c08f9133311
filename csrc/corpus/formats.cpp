// Token stores over buffers in memory.
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

std::vector<std::int64_t> count_effective(const Extents& documents, const std::uint8_t* loss_mask) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(documents.size()));
  for (std::int64_t i = 0; i < documents.size(); ++i) {
    const Extent extent = documents[i];
    std::int64_t n = 0;
    for (std::int64_t t = 1; t < extent.length; ++t) n += loss_mask[extent.begin + t] != 0;
    counts[static_cast<std::size_t>(i)] = n;
  }
  return counts;
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
    auto counts = std::make_shared<std::vector<std::int64_t>>(
        count_effective(store.documents, store.loss_mask));
    store.effective = reinterpret_cast<const std::byte*>(counts->data());
    store.owners.push_back(loss_mask.owner);
    store.owners.push_back(std::move(counts));
  }
  store.name = std::move(name);
  return store;
}

}  // namespace brimful
