// Fills a slot: the only code that writes tokens.
#pragma once

#include <cstddef>

#include "batch/layout.hpp"
#include "corpus/token_reader.hpp"
#include "plan/dealer.hpp"

namespace brimful {

// Writes the columns of `spec` into `slot` (layout.slot_bytes() bytes) and returns what they hold.
// Throws ReadError when a file shrank or cannot be read, FormatError for a bad piece where the
// layout asks for no quarantine.
BatchMeta fill(const BatchSpec& spec, const Layout& layout, const ReadConfig& reading,
               std::byte* slot);

}  // namespace brimful
