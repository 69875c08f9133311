#include "batch/spare_blocks.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "plan/large.hpp"

namespace brimful {
namespace {

struct Spare {
  SpareShape shape;
  ZeroVector<std::int32_t> block;
};

// Blocks that nobody uses, the oldest first.
class Shelf {
 public:
  Shelf() { spares_.reserve(kMostSpareBlocks + 1); }

  ZeroVector<std::int32_t> take(const SpareShape& shape, std::size_t size) {
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
      const auto found = std::find_if(spares_.rbegin(), spares_.rend(),
                                      [&](const Spare& spare) { return spare.shape == shape; });
      if (found != spares_.rend()) {
        ZeroVector<std::int32_t> block = std::move(found->block);
        spares_.erase(std::next(found).base());
        bytes_ -= block.size() * sizeof(std::int32_t);
        return block;
      }
    }
    ZeroVector<std::int32_t> block;
    reserve_large(block, size);
    block.resize(size);
    return block;
  }

  void give_back(const SpareShape& shape, ZeroVector<std::int32_t> block) noexcept {
    const std::size_t bytes = block.size() * sizeof(std::int32_t);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock || bytes > kMostSpareBytes) return;
    spares_.push_back({shape, std::move(block)});
    bytes_ += bytes;
    while (spares_.size() > kMostSpareBlocks || bytes_ > kMostSpareBytes) {
      bytes_ -= spares_.front().block.size() * sizeof(std::int32_t);
      spares_.erase(spares_.begin());
    }
  }

 private:
  std::mutex mutex_;
  std::vector<Spare> spares_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::shared_ptr<std::int32_t> take_spare_block(const SpareShape& shape, std::size_t size) {
  static const auto shelf = std::make_shared<Shelf>();  // outlives the last block
  ZeroVector<std::int32_t> block = shelf->take(shape, size);
  std::int32_t* numbers = block.data();
  auto give_back = [shelf = shelf, shape, block = std::move(block)](std::int32_t*) mutable {
    shelf->give_back(shape, std::move(block));
  };
  return {numbers, std::move(give_back)};
}

}  // namespace brimful
