// XXH3, the 64-bit hash of xxHash 0.8 with its default secret and seed 0, from its specification
// (github.com/Cyan4973/xxHash, doc/xxhash_spec.md): what manifests hold, and other tools compute.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful {

std::uint64_t xxh3(const std::byte* data, std::size_t size);

}  // namespace brimful
