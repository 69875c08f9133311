// Where documents lie: the only look that a window takes at the index. What fills its bins goes by
// these, and not by a file that may have changed meanwhile.
#pragma once

#include <cstdint>
#include <span>

#include "corpus/corpus.hpp"
#include "plan/large.hpp"

namespace brimful {

// [documents]. Throws ReadError where an index cannot be read, or is not what it was.
UnsetVector<DocumentRef> locate(const Corpus& corpus, std::span<const std::int64_t> documents);

}  // namespace brimful
