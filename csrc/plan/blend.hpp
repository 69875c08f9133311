// Megatron's blend of data sets: which of them each sample is of, and the number it has there. Each
// sample goes to the set that is furthest behind its share, the first of these where several are.
// Equal to megatron-core's BlendedDataset (core/datasets/helpers.cpp, as built for x86-64) to the
// last bit, ties included, which hang on how doubles are rounded.
#pragma once

#include <cstdint>
#include <span>

namespace brimful {

// `sets` and `numbers` are [samples]. Throws PlanError for weights that cannot be.
void blend(std::span<const double> weights, std::span<std::int16_t> sets,
           std::span<std::int64_t> numbers);

// The same with exactly sizes[s] samples of set s, whose sum `sets` and `numbers` have. Throws
// PlanError for sizes that cannot be.
void blend_exactly(std::span<const std::int64_t> sizes, std::span<std::int16_t> sets,
                   std::span<std::int64_t> numbers);

}  // namespace brimful
