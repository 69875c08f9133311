// What the stress programs of the loader share: a producer whose batch k carries k in every word of
// its slot, batches that check this for as long as they are held, and the two ways to fail. A
// program prints what is wrong and exits with 1; one that hangs is ended by its alarm.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "loader/prefetcher.hpp"

namespace brimful::test {

inline void check(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::_Exit(1);
}

inline void end_if_hung() { alarm(120); }

// Calls f, which must throw an E; gives back its message.
template <class E, class F>
std::string message_of(F&& f, const std::string& what) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  check(false, what + ": nothing was thrown");
  return {};
}

constexpr std::uint64_t kPoison = 0xdddddddddddddddd;

// Batches 0 .. count-1. The hooks run inside claim() and fill(), before anything else, and may
// wait or throw.
class NumberedProducer : public Producer {
 public:
  using Hook = std::function<void(std::int64_t)>;

  NumberedProducer(std::int64_t count, std::size_t words, Hook on_claim = {}, Hook on_fill = {})
      : count_(count),
        words_(words),
        on_claim_(std::move(on_claim)),
        on_fill_(std::move(on_fill)) {}

  std::size_t slot_bytes() const override { return words_ * sizeof(std::uint64_t); }

  std::optional<BatchSpec> claim() override {
    check(!claiming_.exchange(true), "claim() is called by two threads at once");
    const Leaving leaving(claiming_);
    check(!over_, "claim() is called again after its end or its exception");
    over_ = true;
    if (on_claim_) on_claim_(next_);
    if (next_ == count_) return std::nullopt;
    over_ = false;
    BatchSpec spec;
    spec.after.bin = next_++;
    return spec;
  }

  Filled fill(const BatchSpec& spec, const Lease& lease) const override {
    std::byte* slot = lease.get();
    const std::int64_t number = spec.after.bin;
    check(reinterpret_cast<std::uintptr_t>(slot) % 64 == 0, "a slot is not at a 64-byte boundary");
    {
      const std::lock_guard lock(mutex_);
      const auto [entry, fresh] = in_use_.emplace(slot, true);
      check(fresh || !std::exchange(entry->second, true),
            "batch " + std::to_string(number) + " got a slot that is in use");
      if (!fresh) check(holds(slot, kPoison), "a returned slot was written before it was lent");
    }
    auto* words = reinterpret_cast<std::uint64_t*>(slot);
    try {
      if (on_fill_) on_fill_(number);
    } catch (...) {
      poison(slot);
      throw;
    }
    for (std::size_t i = 0; i < words_; ++i) words[i] = static_cast<std::uint64_t>(number);
    BatchMeta meta;
    meta.num_tokens = number;
    return {meta};
  }

  bool holds(const std::byte* slot, std::uint64_t value) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(slot);
    for (std::size_t i = 0; i < words_; ++i) {
      if (words[i] != value) return false;
    }
    return true;
  }

  // Before a slot's lease is dropped: whoever reads the batch after that reads poison.
  void poison(std::byte* slot) const {
    auto* words = reinterpret_cast<std::uint64_t*>(slot);
    for (std::size_t i = 0; i < words_; ++i) words[i] = kPoison;
    const std::lock_guard lock(mutex_);
    in_use_[slot] = false;
  }

  std::int64_t claimed() const { return next_; }

 private:
  struct Leaving {
    explicit Leaving(std::atomic<bool>& flag) : flag_(flag) {}
    ~Leaving() { flag_ = false; }
    std::atomic<bool>& flag_;
  };

  const std::int64_t count_;
  const std::size_t words_;
  const Hook on_claim_;
  const Hook on_fill_;
  std::atomic<bool> claiming_{false};
  bool over_ = false;
  std::atomic<std::int64_t> next_{0};
  mutable std::mutex mutex_;
  mutable std::map<std::byte*, bool> in_use_;  // every slot seen
};

// A batch in the consumer's hands: right when it comes and still right when it goes.
class Held {
 public:
  Held(std::shared_ptr<NumberedProducer> producer, Delivered batch, std::int64_t number)
      : producer_(std::move(producer)), batch_(std::move(batch)), number_(number) {
    verify("as delivered");
  }
  ~Held() {
    if (!batch_.slot) return;  // moved from
    verify("while it was held");
    producer_->poison(batch_.slot.get());
  }
  Held(Held&&) = default;
  Held& operator=(Held&&) = delete;

  void verify(const char* when) const {
    const std::string name = "batch " + std::to_string(number_) + " " + when;
    check(batch_.spec.after.bin == number_, name + " has another batch's spec");
    check(batch_.meta.num_tokens == number_, name + " has another batch's meta");
    check(producer_->holds(batch_.slot.get(), static_cast<std::uint64_t>(number_)),
          name + " has a foreign word in its slot");
  }

 private:
  std::shared_ptr<NumberedProducer> producer_;
  Delivered batch_;
  std::int64_t number_;
};

// Asks for the next batch, which must be `number`.
inline std::unique_ptr<Held> take(Prefetcher& prefetcher,
                                  const std::shared_ptr<NumberedProducer>& producer,
                                  std::int64_t number) {
  std::optional<Delivered> batch = prefetcher.next();
  check(batch.has_value(), "the stream ends before batch " + std::to_string(number));
  return std::make_unique<Held>(producer, std::move(*batch), number);
}

inline void expect_end(Prefetcher& prefetcher) {
  for (int i = 0; i < 3; ++i) check(!prefetcher.next(), "a batch comes after the last one");
}

}  // namespace brimful::test
