// Rows in an order that comes from outside: a plan that has one follows its indices instead of
// packing what it draws. Each row is a stretch of documents that lie end to end, all of one length.
// The indices are those of Megatron (sample_index.hpp, blend.hpp), whose samples are rows here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan/plan.hpp"

namespace brimful {

// Integers of one of the kinds that an index has, in memory that `owner` keeps.
struct Integers {
  enum class Kind : std::uint8_t { kInt16, kInt32, kUint32, kInt64 };

  std::shared_ptr<const void> owner;
  const void* data = nullptr;
  std::int64_t size = 0;
  Kind kind = Kind::kInt64;

  std::int64_t operator[](std::int64_t i) const;
};

// The samples of one source.
struct SourceSamples {
  Integers documents;  // [places] numbers in the source, in the order they lie in
  Integers begins;     // [2 * (samples + 1)] place and token with which each sample begins
  Integers order;      // [samples] the sample that comes in each place

  std::int64_t size() const { return order.size; }
};

class RowOrder {
 public:
  // `sources` and `numbers`: the source of each row, and its number among the samples of that;
  // without them, all are of the first source. Throws PlanError where the indices do not fit.
  RowOrder(std::vector<SourceSamples> samples, Integers sources, Integers numbers,
           std::int64_t rows);

  std::int64_t rows() const { return rows_; }
  // Throws PlanError for a corpus that the indices cannot be of.
  void check(const Corpus& corpus) const;
  // Rows first .. first + count, each of seq_len tokens. Throws ReadError where documents have not
  // the lengths that the indices were made of.
  WindowPlan plan(const Corpus& corpus, std::int64_t first, std::int64_t count,
                  std::int64_t seq_len) const;

 private:
  // A part of a document: tokens start .. end, or from `start` to its end.
  struct Part {
    static constexpr std::int64_t kToEnd = -1;
    std::int64_t start;
    std::int64_t end;
  };

  std::vector<SourceSamples> samples_;
  Integers sources_;
  Integers numbers_;
  std::int64_t rows_;
};

}  // namespace brimful
