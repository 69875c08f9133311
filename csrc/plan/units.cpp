// The survey of documents and groups, with the accounting of the overlong rule, and the way back
// from units to pieces.
#include "plan/units.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "plan/large.hpp"

namespace brimful {
namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

void check_size(const char* name, std::size_t found, std::size_t documents) {
  if (found == documents) return;
  throw PlanError(std::string(name) + " has " + std::to_string(found) + " entries for " +
                  std::to_string(documents) + " documents; one for each is expected");
}

std::string overlong_message(std::int64_t document, std::int64_t length, const PieceRule& rule) {
  std::string limit = "the capacity of " + number(rule.capacity());
  if (rule.start_tokens() > 0) {
    limit = "the " + number(rule.payload()) + " beside a start token in a capacity of " +
            number(rule.capacity());
  }
  return "document " + number(document) + " has " + number(length) + " tokens, more than " + limit +
         ": choose overlong=\"split\", \"truncate\" or \"drop\", or raise the capacity";
}

// A unit that no rule can cut, and what there is too much of.
PlanError too_large(const std::string& unit, const std::string& found, const std::string& limit) {
  return PlanError(unit + " has " + found + ", more than " + limit +
                   ", and cannot be cut: choose overlong=\"drop\", or raise that limit");
}

}  // namespace

Units::Units(std::span<const std::int64_t> lengths, std::int64_t capacity,
             const PackOptions& options)
    : lengths_(lengths),
      rule_(capacity, options),
      max_segments_(options.max_segments),
      groups_(options.groups.value_or(std::span<const std::int64_t>())),
      resource_(options.resource.value_or(std::span<const std::int64_t>())),
      resource_capacity_(options.resource_capacity) {
  if (options.max_segments < 1) {
    throw PlanError("max_segments is " + number(options.max_segments) +
                    " pieces a bin; at least 1 must be allowed");
  }
  if (options.groups) {
    if (options.strategy == Strategy::kConcat) {
      throw PlanError(
          "strategy=\"concat\" cuts documents anywhere and cannot keep groups together: "
          "choose another strategy, or leave out groups");
    }
    check_size("groups", groups_.size(), lengths.size());
  }
  if (options.resource) {
    check_size("resource", resource_.size(), lengths.size());
    if (resource_capacity_ < 0) {
      throw PlanError("resource_capacity is " + number(resource_capacity_) +
                      "; it cannot be negative");
    }
  }
}

Units Units::copied() const {
  auto copies = std::make_shared<std::vector<std::int64_t>>();
  copies->reserve(lengths_.size() + groups_.size() + resource_.size());
  Units copy(*this);
  for (auto* array : {&copy.lengths_, &copy.groups_, &copy.resource_}) {
    copies->insert(copies->end(), array->begin(), array->end());
    *array = std::span(copies->end() - static_cast<std::ptrdiff_t>(array->size()), array->size());
  }
  copy.copies_ = std::move(copies);
  return copy;
}

UnitCounts Units::survey(Strategy strategy, Packing& packing) const {
  check_resource();
  const bool concat = strategy == Strategy::kConcat;
  const bool by_group = grouped();
  const bool limited = !resource_.empty() && !by_group;
  const std::span<const std::int64_t> lengths = lengths_;
  const std::int64_t payload = rule_.payload();
  UnitCounts counts;
  std::int64_t seen = 0;  // tokens, kept or lost
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t length = lengths[i];
    if (length < 0) {
      throw PlanError("document " + std::to_string(i) + " has a length of " + number(length) +
                      " tokens; lengths cannot be negative");
    }
    if (__builtin_add_overflow(seen, length, &seen)) {
      throw PlanError("the documents up to number " + std::to_string(i) +
                      " have more than 2^63 - 1 tokens; check the lengths");
    }
    packing.empty_documents += length == 0;
    if (limited && length > 0 && resource_[i] > resource_capacity_) {
      drop(i, i + 1, packing);
      continue;
    }
    if (by_group) continue;
    if (length <= payload || concat) {
      counts.pieces += length > 0;
    } else if (rule_.overlong() == Overlong::kSplit) {
      counts.pieces += (length - 1) / payload + 1;
      ++packing.split_documents;
    } else if (rule_.overlong() == Overlong::kTruncate) {
      ++counts.pieces;
      ++packing.truncated_documents;
      packing.dropped_tokens += length - payload;
    } else if (rule_.overlong() == Overlong::kDrop) {
      ++packing.dropped_documents;
      packing.dropped_tokens += length;
    } else {
      throw PlanError(overlong_message(static_cast<std::int64_t>(i), length, rule_));
    }
  }
  counts.units = counts.pieces;
  if (by_group) counts = survey_groups(packing);
  packing.tokens = seen - packing.dropped_tokens;
  if (concat && counts.units > 0) counts.units += packing.tokens / payload;
  return counts;
}

// Each piece of a document has all of its resource, so that cutting cannot help.
void Units::drop(std::size_t begin, std::size_t end, Packing& packing) const {
  for (std::size_t i = begin; i < end; ++i) {
    packing.dropped_documents += lengths_[i] > 0;
    packing.dropped_tokens += lengths_[i];
  }
}

void Units::check_resource() const {
  for (std::size_t i = 0; i < resource_.size(); ++i) {
    if (resource_[i] < 0) {
      throw PlanError("document " + std::to_string(i) + " has a resource of " +
                      number(resource_[i]) + "; it cannot be negative");
    }
    if (resource_[i] > resource_capacity_ && rule_.overlong() != Overlong::kDrop && !grouped() &&
        lengths_[i] > 0) {
      throw too_large("document " + std::to_string(i), "a resource of " + number(resource_[i]),
                      "resource_capacity = " + number(resource_capacity_));
    }
  }
}

// Equal ids are neighbours: no id begins twice.
void Units::check_groups() const {
  std::vector<std::pair<std::int64_t, std::int64_t>> begins;  // id and first document
  bool rising = true;
  bool falling = true;
  const auto documents = static_cast<std::int64_t>(groups_.size());
  for (std::int64_t first = 0; first < documents; first = group_end(first)) {
    if (!begins.empty()) {
      rising = rising && begins.back().first < groups_[at(first)];
      falling = falling && begins.back().first > groups_[at(first)];
    }
    begins.emplace_back(groups_[at(first)], first);
  }
  if (rising || falling) return;
  std::sort(begins.begin(), begins.end());
  for (std::size_t i = 1; i < begins.size(); ++i) {
    if (begins[i - 1].first != begins[i].first) continue;
    throw PlanError("documents " + number(begins[i - 1].second) + " and " +
                    number(begins[i].second) + " have group " + number(begins[i].first) +
                    " with other groups between them; documents of a group must be neighbours: "
                    "sort the documents by group");
  }
}

Unit Units::group(std::int64_t first, std::int64_t end) const {
  Unit unit{.document = first, .start = 0, .length = 0, .size = 0, .pieces = 0, .resource = 0};
  std::int64_t size = 0;
  for (std::int64_t document = first; document < end; ++document) {
    const std::int64_t length = lengths_[at(document)];
    if (length == 0) continue;
    ++unit.pieces;
    unit.length += length;
    if (size >= 0) size = length > rule_.payload() ? -1 : size + rule_.size(length);
    if (size > capacity()) size = -1;
    if (unit.resource < 0) continue;
    const std::int64_t resource = resource_of(document);
    const bool too_much = resource > resource_capacity_ - unit.resource;
    unit.resource = !resource_.empty() && too_much ? -1 : unit.resource + resource;
  }
  unit.size = static_cast<std::int32_t>(size);
  return unit;
}

UnitCounts Units::survey_groups(Packing& packing) const {
  check_groups();
  UnitCounts counts;
  each_group([&](const Unit& unit) {
    if (fits(unit)) {
      ++counts.units;
      counts.pieces += unit.pieces;
      return;
    }
    const std::int64_t end = group_end(unit.document);
    if (rule_.overlong() == Overlong::kDrop) {
      drop(at(unit.document), at(end), packing);
      return;
    }
    const std::string name = "group " + number(groups_[at(unit.document)]) + " (documents " +
                             number(unit.document) + " to " + number(end - 1) + ")";
    if (unit.size < 0) {
      throw too_large(name, number(unit.length) + " tokens in " + number(unit.pieces) + " pieces",
                      "a bin of capacity = " + number(capacity()) + " holds");
    }
    if (unit.pieces > max_segments_) {
      throw too_large(name, number(unit.pieces) + " pieces",
                      "max_segments = " + number(max_segments_));
    }
    throw too_large(name, "more of the resource than a bin may have",
                    "resource_capacity = " + number(resource_capacity_));
  });
  return counts;
}

void Units::unfold(Packing& packing) const {
  if (grouped()) {
    unfold_groups(packing);
  } else if (!rule_.exact()) {
    for (std::size_t i = 0; i < packing.lengths.size(); ++i) {
      const std::int64_t length = lengths_[at(packing.documents[i])];
      packing.lengths[i] = static_cast<std::int32_t>(rule_.length_at(packing.starts[i], length));
    }
  }
}

void Units::unfold_groups(Packing& packing) const {
  UnsetVector<std::int64_t> documents;
  UnsetVector<std::int32_t> lengths;
  reserve_large(documents, lengths_.size());
  reserve_large(lengths, lengths_.size());
  std::int64_t unit = 0;
  for (std::size_t bin = 1; bin < packing.bin_offsets.size(); ++bin) {
    for (; unit < packing.bin_offsets[bin]; ++unit) {
      const std::int64_t first = packing.documents[at(unit)];
      const std::int64_t end = group_end(first);
      for (std::int64_t document = first; document < end; ++document) {
        if (lengths_[at(document)] == 0) continue;
        documents.push_back(document);
        lengths.push_back(static_cast<std::int32_t>(lengths_[at(document)]));
      }
    }
    packing.bin_offsets[bin] = static_cast<std::int64_t>(documents.size());
  }
  packing.starts.assign(documents.size(), 0);
  packing.documents = std::move(documents);
  packing.lengths = std::move(lengths);
}

}  // namespace brimful
