#include "batch/flatten.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "batch/cu_seqlens.hpp"
#include "batch/masks.hpp"
#include "core/columns.hpp"
#include "core/error.hpp"
#include "core/round_up.hpp"

namespace brimful {
namespace {

// Labels of one document: those of its tokens but the first.
std::int64_t count_labels(const FlatDocument& document) {
  const std::int64_t n = document.length - 1;
  const std::uint8_t* mask = document.mask == nullptr ? nullptr : document.mask + 1;
  if (document.labels == nullptr) return mask == nullptr ? n : columns::count_set(mask, n);
  return visit_type(document.label_type, [&](auto type) {
    using T = typename decltype(type)::type;
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto label = static_cast<std::int64_t>(columns::load<T>(document.labels, i + 1));
      count += label != kIgnoreLabel && (mask == nullptr || mask[i] != 0) ? 1 : 0;
    }
    return count;
  });
}

void check_tokens(const FlatDocument& document, std::int64_t number) {
  visit_type(document.type, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_signed_v<T>) {
      const std::int64_t at =
          columns::first_outside<T>(document.values, std::uint64_t{1} << 63, document.length);
      if (at == document.length) return;
      throw FormatError("document " + std::to_string(number) + ": token " + std::to_string(at) +
                        " is " + std::to_string(columns::load<T>(document.values, at)) +
                        "; token ids are 0 or more");
    }
  });
}

void check_at_least_one(const char* name, std::int64_t value) {
  if (value >= 1 && value <= kMostSlots) return;
  throw PlanError(std::string(name) + " is " + std::to_string(value) + "; it must be from 1 to " +
                  std::to_string(kMostSlots));
}

BatchMeta lay_out(std::span<const FlatDocument> documents, const FlattenOptions& options) {
  check_at_least_one("align", options.align);
  check_at_least_one("pad_to_multiple_of", options.multiple);
  BatchMeta meta;
  std::int64_t slots = 0;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::int64_t length = documents[i].length;
    if (length == 0) continue;
    meta.documents.push_back(static_cast<std::int64_t>(i));
    meta.lengths.push_back(length);
    meta.num_tokens += length;
    meta.num_items += count_labels(documents[i]);
    meta.attention_work += length * length;
    slots += round_up(length, options.align);
  }
  if (meta.documents.empty()) {
    throw FormatError("none of the " + std::to_string(documents.size()) +
                      " documents has a token: leave such batches out");
  }
  const CuSeqlensOptions rule{.total = round_up(slots, options.multiple),
                              .max_segments = options.max_segments,
                              .align = options.align};
  const std::int64_t row[] = {static_cast<std::int64_t>(meta.lengths.size())};
  meta.cu_seqlens = make_cu_seqlens(meta.lengths, row, rule);
  if (*rule.total > slots) {
    meta.documents.push_back(-1);
    meta.lengths.push_back(*rule.total - slots);
  }
  meta.starts.assign(meta.documents.size(), 0);
  for (std::size_t s = 0; s < meta.documents.size(); ++s) {
    meta.max_seqlen =
        std::max<std::int64_t>(meta.max_seqlen, meta.cu_seqlens[s + 1] - meta.cu_seqlens[s]);
  }
  meta.rows = 1;
  meta.columns = *rule.total;
  return meta;
}

// Writes the columns of one batch.
class Writer {
 public:
  Writer(std::span<const FlatDocument> documents, const FlattenOptions& options, Flat& flat)
      : documents_(documents),
        options_(options),
        flat_(flat),
        num_documents_(static_cast<std::size_t>(
            std::count_if(flat.meta.documents.begin(), flat.meta.documents.end(),
                          [](std::int64_t document) { return document >= 0; }))) {}

  void write();

 private:
  // The column, or nothing where it is not asked for.
  template <class T>
  T* asked(Column column) {
    const auto& fields = options_.fields;
    const auto at = std::find(fields.begin(), fields.end(), column);
    if (at == fields.end()) return nullptr;
    const auto offset = flat_.layout.offset(static_cast<std::size_t>(at - fields.begin()));
    return reinterpret_cast<T*>(flat_.slot.get() + offset);
  }

  // The column, or memory for as long as this lives where it is not asked for.
  std::int64_t* asked_or_scratch(Column column) {
    auto* out = asked<std::int64_t>(column);
    return out == nullptr ? scratch() : out;
  }

  std::int64_t* scratch() {
    scratch_.push_back(std::make_unique_for_overwrite<std::int64_t[]>(total()));
    return scratch_.back().get();
  }

  std::size_t total() const { return static_cast<std::size_t>(flat_.meta.columns); }

  // Calls f(document, its first slot) for all, and gap(first, last) for what lies between them.
  template <class F, class Gap>
  void each(const F& f, const Gap& gap) const {
    const BatchMeta& meta = flat_.meta;
    for (std::size_t s = 0; s < num_documents_; ++s) {
      const FlatDocument& document = documents_[static_cast<std::size_t>(meta.documents[s])];
      f(document, meta.cu_seqlens[s]);
      gap(meta.cu_seqlens[s] + document.length, meta.cu_seqlens[s + 1]);
    }
    gap(meta.cu_seqlens[num_documents_], meta.columns);
  }

  std::vector<std::uint8_t> joined_masks() const;
  const std::int64_t* joined_labels(const std::int64_t* ids);
  void write_ids(std::int64_t* out) const;
  void write_weights(const std::int64_t* labels, float* out) const;

  std::span<const FlatDocument> documents_;
  const FlattenOptions& options_;
  Flat& flat_;
  std::size_t num_documents_;
  std::vector<std::unique_ptr<std::int64_t[]>> scratch_;
};

void Writer::write_ids(std::int64_t* out) const {
  each(
      [&](const FlatDocument& document, std::int64_t at) {
        visit_type(document.type, [&](auto type) {
          columns::widen<typename decltype(type)::type>(document.values, out + at, document.length);
        });
      },
      [&](std::int64_t first, std::int64_t last) {
        std::fill(out + first, out + last, options_.pad_token_id);
      });
}

// [total], or empty where no document has a mask.
std::vector<std::uint8_t> Writer::joined_masks() const {
  const bool any = std::any_of(documents_.begin(), documents_.end(),
                               [](const FlatDocument& d) { return d.mask != nullptr; });
  if (!any) return {};
  std::vector<std::uint8_t> masks(total(), 1);
  each(
      [&](const FlatDocument& document, std::int64_t at) {
        if (document.mask != nullptr) {
          std::copy_n(document.mask, document.length, masks.begin() + at);
        }
      },
      [](std::int64_t, std::int64_t) {});
  return masks;
}

// The labels that were given, each in its token's slot; the tokens themselves where none were.
const std::int64_t* Writer::joined_labels(const std::int64_t* ids) {
  const bool any = std::any_of(documents_.begin(), documents_.end(),
                               [](const FlatDocument& d) { return d.labels != nullptr; });
  if (!any) return ids;
  std::int64_t* labels = scratch();
  each(
      [&](const FlatDocument& document, std::int64_t at) {
        if (document.labels == nullptr) {
          std::copy_n(ids + at, document.length, labels + at);
          return;
        }
        visit_type(document.label_type, [&](auto type) {
          columns::widen<typename decltype(type)::type>(document.labels, labels + at,
                                                        document.length);
        });
      },
      [&](std::int64_t first, std::int64_t last) {
        std::fill(labels + first, labels + last, kIgnoreLabel);
      });
  return labels;
}

void Writer::write_weights(const std::int64_t* labels, float* out) const {
  std::transform(labels, labels + total(), out,
                 [](std::int64_t label) { return label == kIgnoreLabel ? 0.0F : 1.0F; });
}

void Writer::write() {
  const BatchMeta& meta = flat_.meta;
  // What pads cu_seqlens to a fixed size is no segment here.
  const auto cu_seqlens = std::span(meta.cu_seqlens).first(meta.documents.size() + 1);
  const Segments segments(cu_seqlens, static_cast<std::int64_t>(num_documents_), meta.lengths);
  std::int64_t* ids = asked_or_scratch(Column::kInputIds);
  write_ids(ids);
  if (auto* out = asked<std::int64_t>(Column::kPositionIds)) {
    write_position_ids(cu_seqlens, nullptr, out);
  }
  if (auto* out = asked<std::int32_t>(Column::kDocumentIds)) write_document_ids(segments, out);
  auto* labels = asked<std::int64_t>(Column::kLabels);
  auto* shift_labels = asked<std::int64_t>(Column::kShiftLabels);
  auto* weights = asked<float>(Column::kLossWeights);
  if (labels == nullptr && shift_labels == nullptr && weights == nullptr) return;
  const std::vector<std::uint8_t> masks = joined_masks();
  const LabelSource source{TokenType::kI64, reinterpret_cast<const std::byte*>(joined_labels(ids)),
                           masks.empty() ? nullptr : masks.data()};
  if (shift_labels != nullptr) write_shift_labels(segments, source, nullptr, shift_labels);
  if (labels == nullptr && shift_labels == nullptr) labels = scratch();
  if (labels != nullptr) write_labels(segments, source, labels);
  if (weights != nullptr) write_weights(labels != nullptr ? labels : shift_labels, weights);
}

}  // namespace

Flat flatten(std::span<const FlatDocument> documents, const FlattenOptions& options) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    check_tokens(documents[i], static_cast<std::int64_t>(i));
  }
  BatchMeta meta = lay_out(documents, options);
  LayoutConfig config;
  config.fields = options.fields;
  config.varlen = true;
  config.seq_len = meta.columns;
  Layout layout(std::move(config));
  auto slot = std::make_unique_for_overwrite<std::byte[]>(layout.slot_bytes());
  Flat flat{std::move(layout), std::move(slot), std::move(meta)};
  Writer(documents, options, flat).write();
  return flat;
}

}  // namespace brimful
