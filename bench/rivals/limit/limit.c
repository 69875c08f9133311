// The jobs of a loader as plain loops in one thread: what the machine gives without a loader.
//
// Tokens are uint16 and come from a map larger than the caches, in random order; columns go to
// `buffers` sets of memory in turn, as many as a ring has slots, so that a column is as far from the
// core as it is in a running loader. Nothing is planned, packed, checked, counted or handed over.

#include <stdint.h>

// Rows of `seq_len` tokens: ids[buffer][row][i] = tokens[order[..]][i], `rows` rows a batch.
// `order` holds batches x rows row numbers.
void widen_rows(const uint16_t* tokens, const int64_t* order, int64_t batches, int64_t rows,
                int64_t seq_len, int64_t* ids, int64_t buffers) {
  for (int64_t b = 0; b < batches; ++b) {
    int64_t* batch = ids + (b % buffers) * rows * seq_len;
    for (int64_t r = 0; r < rows; ++r) {
      const uint16_t* restrict from = tokens + order[b * rows + r] * seq_len;
      int64_t* restrict to = batch + r * seq_len;
      for (int64_t i = 0; i < seq_len; ++i) to[i] = from[i];
    }
  }
}

// Documents end to end, `slots` tokens a batch, the last document of a batch cut and gone on with
// in the next one. Columns are [buffers][slots], cu_seqlens [buffers][slots + 1]. Takes documents
// order[0], order[1], ... and gives how many it took; at least `documents` must be there.
int64_t fill_varlen(const uint16_t* tokens, const int64_t* offsets, const int64_t* order,
                    int64_t documents, int64_t batches, int64_t slots, int64_t* ids,
                    int64_t* labels, int64_t* positions, int32_t* document_ids,
                    int32_t* cu_seqlens, int64_t buffers) {
  int64_t next = 0;
  int64_t begin = 0;
  int64_t end = 0;  // what is left of a document
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t at = b % buffers * slots;
    int32_t* cu = cu_seqlens + b % buffers * (slots + 1);
    int64_t filled = 0;
    int32_t segment = 0;
    cu[0] = 0;
    while (filled < slots) {
      if (begin == end) {
        if (next == documents) return -1;
        const int64_t document = order[next++];
        begin = offsets[document];
        end = offsets[document + 1];
      }
      const int64_t room = slots - filled;
      const int64_t n = end - begin < room ? end - begin : room;
      const uint16_t* restrict from = tokens + begin;
      int64_t* restrict id = ids + at + filled;
      int64_t* restrict label = labels + at + filled;
      int64_t* restrict position = positions + at + filled;
      int32_t* restrict in_document = document_ids + at + filled;
      for (int64_t i = 0; i < n; ++i) id[i] = from[i];
      for (int64_t i = 0; i < n; ++i) label[i] = from[i];
      for (int64_t i = 0; i < n; ++i) position[i] = i;
      for (int64_t i = 0; i < n; ++i) in_document[i] = segment;
      label[0] = -100;
      begin += n;
      filled += n;
      cu[++segment] = (int32_t)filled;
    }
  }
  return next;
}
