#include "plan/locate.hpp"

#include <cstddef>

#include "corpus/read_guard.hpp"

namespace brimful {

UnsetVector<DocumentRef> locate(const Corpus& corpus, std::span<const std::int64_t> documents) {
  UnsetVector<DocumentRef> refs(documents.size());
  constexpr std::size_t kAhead = 16;  // reads of the index under way
  volatile std::size_t at = 0;
  const bool read = read_guarded([&] {
    for (std::size_t i = 0; i < documents.size(); ++i) {
      at = i;
      if (i + kAhead < documents.size()) corpus.expect(documents[i + kAhead]);
      refs[i] = corpus.locate(documents[i]);
    }
  });
  if (!read) corpus.throw_unreadable_index(documents[at]);
  corpus.check_indices(refs);
  return refs;
}

}  // namespace brimful
