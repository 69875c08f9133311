// Units: what is placed indivisibly. A unit is a piece of a document, as the overlong rule cuts it,
// or a group of whole documents that must stay together; always a contiguous range of documents.
// The strategies place units by their sizes and never look at documents. Units are made while
// walking the lengths and are not listed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/packer.hpp"
#include "plan/piece_rule.hpp"

namespace brimful {

struct Unit {
  std::int64_t document;  // the first one of a group
  std::int64_t start;     // first token in it
  std::int64_t length;    // tokens
  std::int32_t size;      // slots
  std::int64_t pieces;    // documents of a group that are not empty; else 1
  std::int64_t resource;
};

// How many there are of each.
struct UnitCounts {
  std::int64_t units = 0;
  std::int64_t pieces = 0;
};

class Units {
 public:
  // Keeps references to the arrays; throws PlanError for constraints that cannot be.
  Units(std::span<const std::int64_t> lengths, std::int64_t capacity, const PackOptions& options);

  // The same units, of copies of the arrays: nobody writes to these while they are read again.
  Units copied() const;

  std::span<const std::int64_t> lengths() const { return lengths_; }
  const PieceRule& rule() const { return rule_; }
  std::int64_t capacity() const { return rule_.capacity(); }
  std::int64_t max_segments() const { return max_segments_; }
  std::int64_t resource_capacity() const { return resource_capacity_; }
  bool grouped() const { return !groups_.empty(); }
  std::int64_t resource_of(std::int64_t document) const {
    return resource_.empty() ? 0 : resource_[at(document)];
  }
  // Each unit is a piece, with its tokens for size.
  bool plain() const { return rule_.exact() && !grouped() && resource_.empty(); }
  // Room is more than free slots and a number of pieces: a unit that fits need not be the same as
  // another one of its size.
  bool many_sided() const {
    return !resource_.empty() || (grouped() && max_segments_ < PackOptions::kUnlimited);
  }

  // Checks all lengths and constraints and fills the counters of `packing`. Throws as pack() does.
  // Strategy::kConcat cuts where it places: its pieces are documents here, and its units as many as
  // there are pieces without constraints, or a little more.
  UnitCounts survey(Strategy strategy, Packing& packing) const;

  // Calls f(const Unit&) for each unit, in arrival order. survey() must have been called.
  template <class F>
  void each(F&& f) const {
    if (grouped()) {
      each_group([&](const Unit& unit) {
        if (fits(unit)) f(unit);
      });
      return;
    }
    // Copies, as the compiler cannot know that f leaves the members alone.
    const PieceRule rule = rule_;
    const std::span<const std::int64_t> lengths = lengths_;
    const auto documents = static_cast<std::int64_t>(lengths.size());
    if (rule.exact() && resource_.empty()) {
      for (std::int64_t document = 0; document < documents; ++document) {
        rule.each_piece(lengths[at(document)], [&](std::int64_t start, std::int64_t length) {
          f(Unit{document, start, length, static_cast<std::int32_t>(length), 1, 0});
        });
      }
      return;
    }
    for (std::int64_t document = 0; document < documents; ++document) {
      const std::int64_t resource = resource_of(document);
      if (resource > resource_capacity_) continue;  // dropped
      rule.each_piece(lengths[at(document)], [&](std::int64_t start, std::int64_t length) {
        f(Unit{document, start, length, rule.size(length), 1, resource});
      });
    }
  }

  // Turns bins of units, with their sizes for lengths, into bins of pieces.
  void unfold(Packing& packing) const;

 private:
  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  bool fits(const Unit& group) const {
    return group.size >= 0 && group.resource >= 0 && group.pieces <= max_segments_;
  }
  // The end of the group that begins with this document.
  std::int64_t group_end(std::int64_t document) const {
    const std::int64_t group = groups_[at(document)];
    do {
      ++document;
    } while (document < static_cast<std::int64_t>(groups_.size()) &&
             groups_[at(document)] == group);
    return document;
  }
  // Groups that are not empty, whether they fit or not: a size or a resource over its capacity is
  // given as -1.
  template <class F>
  void each_group(F&& f) const {
    const auto documents = static_cast<std::int64_t>(lengths_.size());
    for (std::int64_t first = 0, end = 0; first < documents; first = end) {
      end = group_end(first);
      const Unit unit = group(first, end);
      if (unit.pieces > 0) f(unit);
    }
  }
  Unit group(std::int64_t first, std::int64_t end) const;
  void check_resource() const;
  void check_groups() const;
  void drop(std::size_t begin, std::size_t end, Packing& packing) const;
  UnitCounts survey_groups(Packing& packing) const;
  void unfold_groups(Packing& packing) const;

  std::shared_ptr<const std::vector<std::int64_t>> copies_;  // of the arrays, end to end
  std::span<const std::int64_t> lengths_;
  PieceRule rule_;
  std::int64_t max_segments_;
  std::span<const std::int64_t> groups_;    // [documents], or empty
  std::span<const std::int64_t> resource_;  // [documents], or empty
  std::int64_t resource_capacity_;
};

}  // namespace brimful
