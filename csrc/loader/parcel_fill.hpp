// Fills a parcel: a batch as it travels to a device, tokens as narrow as they are stored and what
// tells the segments. The columns that the device makes of it are those of fill().
#pragma once

#include <cstddef>

#include "batch/layout.hpp"
#include "corpus/corpus.hpp"
#include "corpus/token_reader.hpp"
#include "device/kernels.hpp"
#include "device/parcel.hpp"
#include "plan/dealer.hpp"

namespace brimful {

// What one destination in device memory holds: a parcel, and behind it the columns of the layout.
class DeviceLayout {
 public:
  // For any batch of documents of this corpus.
  DeviceLayout(Layout layout, const Corpus& corpus);

  const Layout& layout() const { return layout_; }
  std::size_t parcel_bytes() const { return parcel_bytes_; }  // of the longest parcel
  // Byte offset of field f; where its columns begin is a multiple of 64.
  std::size_t offset(std::size_t f) const { return parcel_bytes_ + layout_.offset(f); }
  std::size_t bytes() const { return parcel_bytes_ + layout_.slot_bytes(); }

  // What makes the columns of a parcel that lies, like them, in `destination`.
  device::ExpandKernel expand(const device::ParcelShape& shape, std::int64_t row,
                              std::byte* destination) const;

 private:
  Layout layout_;
  std::size_t parcel_bytes_;
};

struct FilledParcel {
  BatchMeta meta;
  device::ParcelShape shape;
  std::int64_t row = 0;  // slots of a row, of the whole batch
};

// Writes the parcel of `spec` into `slot`, of parcel_bytes() bytes. Throws as fill() does.
FilledParcel fill_parcel(const BatchSpec& spec, const LayoutConfig& config,
                         const ReadConfig& reading, std::byte* slot);

}  // namespace brimful
