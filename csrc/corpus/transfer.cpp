#include "corpus/transfer.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

template <class Body>
void guarded(const TokenStore& store, const Body& body) {
  if (!read_guarded(body)) throw_read_error(store);
}

void check_range(const TokenStore& store, std::int64_t first, std::int64_t count,
                 std::int64_t size) {
  if (first < 0 || count < 0 || first > size || count > size - first) {
    throw std::out_of_range(store.name + ": " + std::to_string(count) + " from " +
                            std::to_string(first) + " of " + std::to_string(size));
  }
}

// The place in the store's values of token `begin`, once `count` tokens from there are known to be.
std::size_t place(const TokenStore& store, std::int64_t begin, std::int64_t count) {
  std::int64_t first = 0;
  std::int64_t size = 0;
  guarded(store, [&] {
    if (store.documents.size() > 0) first = store.documents[0].begin;
    size = store.documents.num_tokens();
  });
  check_range(store, begin, count, size);
  check_range(store, first + begin, count, store.num_tokens);  // an index may have changed
  return static_cast<std::size_t>(first + begin);
}

}  // namespace

void read_tokens(const TokenStore& store, std::int64_t begin, std::int64_t count, void* out) {
  const std::size_t at = place(store, begin, count);
  if (count == 0) return;  // there may be no address to copy from
  const std::size_t size = item_size(store.type);
  const TokenView view = view_tokens(store, static_cast<std::int64_t>(at));
  guarded(store, [&] { std::memcpy(out, view.data, static_cast<std::size_t>(count) * size); });
}

void read_loss_mask(const TokenStore& store, std::int64_t begin, std::int64_t count,
                    std::uint8_t* out) {
  if (store.loss_mask == nullptr) throw std::logic_error(store.name + ": has no loss mask");
  const std::size_t at = place(store, begin, count);
  if (count == 0) return;
  guarded(store, [&] { std::memcpy(out, store.loss_mask + at, static_cast<std::size_t>(count)); });
}

Structure read_structure(const TokenStore& store, std::int64_t first, std::int64_t count) {
  const Extents& units = store.documents;
  check_range(store, first, count, units.size());
  Structure structure;
  if (count == 0) return structure;
  std::int64_t first_sequence = 0;
  std::int64_t sequences = 0;
  guarded(store, [&] {
    structure.begin = units[first].begin - units[0].begin;
    first_sequence = units.sequence_start(first);
    sequences = units.sequence_start(first + count) - first_sequence;
  });
  structure.sequence_lengths.resize(static_cast<std::size_t>(sequences));
  structure.sequence_ends.resize(static_cast<std::size_t>(count));
  guarded(store, [&] {
    units.sequence_lengths(first_sequence, sequences, structure.sequence_lengths.data());
    for (std::int64_t i = 0; i < count; ++i) {
      structure.sequence_ends[static_cast<std::size_t>(i)] =
          units.sequence_start(first + i + 1) - first_sequence;
    }
  });
  return structure;
}

}  // namespace brimful
