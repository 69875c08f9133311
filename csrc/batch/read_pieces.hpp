// Reads the pieces of a batch that is laid out, judges them, and hands each to whoever writes it
// down: the columns of a slot, or what a device makes columns of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "batch/lay_out.hpp"
#include "core/columns.hpp"
#include "corpus/read_guard.hpp"
#include "corpus/token_reader.hpp"

namespace brimful {

// A segment as the quarantine looks at it.
StoredPiece stored(const Segment& segment);

// Whether the token that it carries as a label is a bad one. The document's next piece is put aside
// for it then, and this one loses the label.
bool loses_label(const Segment& segment, std::optional<std::int64_t> vocab_size);

// Throws FormatError where loss masks leave another number of labels than was planned.
void check_count(std::int64_t found, std::int64_t planned);

// Calls write(segment, ahead) for each piece, whose values and mask are there and stay for the
// call, with what it should ask for meanwhile, and write_tail(segment) for each tail and each bad
// piece, which is put aside before. Neither may own anything when it returns, for a failed read
// jumps out of it. Fills the rest of `meta`. Throws ReadError when a file shrank or cannot be read,
// FormatError for a bad piece where the layout asks for no quarantine.
template <class Write, class WriteTail>
void read_pieces(const BatchSpec& spec, const LayoutConfig& config, const ReadConfig& reading,
                 std::vector<Segment>& segments, BatchMeta& meta, const Write& write,
                 const WriteTail& write_tail) {
  TokenReader reader(reading);
  // Volatile: read again after a jump out of the loop.
  volatile std::size_t at = 0;
  std::int64_t num_items = 0;
  std::int64_t planned_items = 0;
  const bool read = read_guarded([&] {
    for (std::size_t s = 0; s < segments.size(); ++s) {
      at = s;
      Segment& segment = segments[s];
      columns::Ahead ahead;
      if (s + 1 < segments.size() && segments[s + 1].store != nullptr) {
        const Segment& next = segments[s + 1];
        ahead = reader.expect(*next.store, next.first, next.length);
      }
      if (segment.store == nullptr) {
        ahead.ask(ahead.lines());
        write_tail(segment);
        continue;
      }
      const std::int64_t tokens = segment.tokens_to_read();
      segment.values = reader.tokens(*segment.store, segment.first, tokens);
      segment.mask = reader.loss_mask(*segment.store, segment.first, tokens);
      const StoredPiece piece = stored(segment);
      const auto bad = inspect(piece, config.vocab_size, reader);
      planned_items += piece.effective_tokens;
      if (bad) {
        meta.bad.push_back(*bad);
        reader.suspect(*segment.store, segment.first);  // is the file to blame?
        put_aside(segment, s, meta);
        write_tail(segment);
        continue;
      }
      if (loses_label(segment, config.vocab_size)) {
        segment.carries = false;
        meta.lost_labels += 1;
      }
      write(segment, ahead);
      const auto last_token = visit_type(segment.store->type, [&](auto type) {
        using T = typename decltype(type)::type;
        return static_cast<std::int64_t>(columns::load<T>(segment.values, tokens - 1));
      });
      reader.copied(*segment.store, segment.first, tokens, last_token);
      num_items += piece.effective_tokens;
    }
  });
  if (!read) throw_read_error(*segments[at].store, segments[at].first);
  if (planned_items != spec.delta.rank.effective_tokens) {
    for (const Segment& s : segments) {  // is a file to blame?
      if (s.store != nullptr) reader.suspect(*s.store, s.first);
    }
  }
  reader.check_files(segments.size(), [&](std::size_t s) {
    return std::pair(segments[s].store, segments[s].first);
  });
  if (!meta.bad.empty() && !config.quarantine) throw_bad_piece(meta.bad[0], config.vocab_size);
  meta.num_items = num_items - meta.lost_labels;
  meta.read_time = reader.read_time();
  check_count(planned_items, spec.delta.rank.effective_tokens);
}

}  // namespace brimful
