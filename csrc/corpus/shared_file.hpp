// A file that is open for reading: one object for each file of the system, whoever opens it and by
// whichever path, for as long as anyone uses it. Up to a cap files stay mapped and keep their
// descriptor; what is beyond is opened again when it is needed, and the least recently used goes.
// Whatever is opened again must be the file that it was: same device, inode, size and time.
//
// Threads: everything from any thread. Offsets and sizes are bytes. What has gone wrong with a file
// while it was open is a ReadError that names it and the place.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace brimful {

// A path as the system knows it, and as text for messages: the two differ where a name is not
// UTF-8.
struct FileName {
  std::string path;
  std::string text;
};

class SharedFile : public std::enable_shared_from_this<SharedFile> {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Caps on what stays open. Each of the last two is also kept to a quarter of the descriptors that
  // the process may have.
  static constexpr int kMaxMapped = 512;
  static constexpr int kMaxDescriptors = 128;
  static constexpr int kMaxOnDemand = 64;

  // An index is read in place wherever a plan looks, so it stays mapped beyond any cap.
  enum class Kind : std::uint8_t { kTokens, kIndex };

  // Throws std::filesystem::filesystem_error with the system's code when the file cannot be opened
  // (absent, no permission), FormatError when it is no regular file.
  static std::shared_ptr<SharedFile> open(const FileName& name, Kind kind);

  SharedFile(Private, FileName name);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  const std::string& text() const { return name_.text; }
  std::int64_t size() const { return size_; }  // at open
  // All bytes, as long as this object lives; null for an empty file, and where it is mapped on
  // demand only.
  const std::byte* data() const { return data_.load(std::memory_order_acquire); }
  // All bytes, as long as a copy of the result lives.
  std::shared_ptr<const std::byte> map();
  // Whether it has a descriptor or a mapping that is never closed to make room for others.
  bool stays_open() const { return descriptor_ >= 0 || counts_as_mapped_; }
  // Copies bytes offset .. offset + count - 1, by a read and not through a mapping.
  void read(std::int64_t offset, std::int64_t count, void* out);

  // Throws when the file is known to have been written to or cut since it was opened. `offset` is
  // where it was read.
  void check(std::int64_t offset);
  // The same after a read of a mapping failed (SIGBUS), where something must be wrong.
  [[noreturn]] void fail(std::int64_t offset);
  // Where in the file an address of one of its mappings lies.
  std::optional<std::int64_t> offset_of(const void* address);

  // Tells the system that bytes begin, ..., end - 1 will be read, and does not wait for them. Of
  // files beyond the caps it says nothing.
  void will_need(std::int64_t begin, std::int64_t end) const;

  // Makes the next renew() take the file anew, for errors that are found elsewhere.
  void mark_failed() { failed_ = true; }
  // After an error: takes the file that has the name now in place of the one that failed, at the
  // same addresses, if it has the same size and passes `check_content`.
  void renew(const std::function<void()>& check_content);
  // How often that was done: who keeps what he knows of the content asks whether it is still so.
  std::int64_t renewals() const { return renewals_.load(std::memory_order_acquire); }

  // How often the system was asked to open it, and how often again: after an eviction or an error.
  std::int64_t reopens() const { return reopens_; }

 private:
  friend class OpenFiles;
  struct OnDemand;
  std::shared_ptr<OnDemand> on_demand(bool mapped);
  void take_named_file();
  // Whether a mapping still ends as the file did that was opened.
  bool ends_as_opened() const;
  [[noreturn]] void throw_error(std::int64_t offset, const std::string& problem);
  [[noreturn]] void throw_size(std::int64_t found, std::int64_t offset);

  const FileName name_;  // the path is absolute
  std::int64_t size_ = 0;
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
  std::atomic<std::int64_t> modified_{0};  // ns
  std::atomic<const std::byte*> data_{nullptr};
  // A byte near the end, with its place: not zero if there is such a one. Of what stays mapped and
  // has no descriptor, the only witness of a cut after which the name went to another file.
  struct Witness {
    std::int64_t place = 0;
    std::byte value{0};
  };
  static Witness find_witness(int fd, std::int64_t size);
  Witness witness_;
  int descriptor_ = -1;  // kept open, or -1
  bool counts_as_mapped_ = false;
  std::atomic<bool> failed_{false};
  std::atomic<std::int64_t> reopens_{0};
  std::atomic<std::int64_t> renewals_{0};
};

}  // namespace brimful
