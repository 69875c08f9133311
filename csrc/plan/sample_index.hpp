// Megatron's index of samples: documents laid end to end in an order, cut into samples of seq_len
// tokens. Entry k is where sample k begins: a place in the order and an offset in that document.
// The entries equal those of megatron-core's GPTDataset (core/datasets/helpers.cpp) to the last
// bit; this way of finding them looks at each document once and divides nothing.
#pragma once

#include <cstdint>
#include <span>

#include "plan/large.hpp"

namespace brimful {

struct SampleRule {
  std::int64_t seq_len = 0;
  // Whether a sample takes one token more, the label of its last one, which the next one begins
  // with.
  bool extra_token = true;
  bool drop_partial = true;  // the last tokens, where they fill no sample
};

// Samples in `tokens` tokens. Throws PlanError for a rule that cannot be.
std::int64_t count_samples(std::int64_t tokens, const SampleRule& rule);

// [2 * (count + 1)], pairs. `order` holds numbers of documents, `lengths` tokens of each document.
// Throws PlanError for numbers that are none and for lengths below 0, and where a last, partial
// sample ends with an empty document, an entry that Megatron does not allow either.
template <class Index, class Length>
UnsetVector<Index> index_samples(std::span<const Length> lengths,
                                 std::span<const std::int32_t> order, std::int64_t count,
                                 const SampleRule& rule);

}  // namespace brimful
