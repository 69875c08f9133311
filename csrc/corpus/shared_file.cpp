#include "corpus/shared_file.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// Without O_NONBLOCK, opening a named pipe would wait for a writer.
Descriptor open_path(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

[[noreturn]] void throw_system_error(const FileName& name, int code) {
  throw std::filesystem::filesystem_error("cannot open a token file", name.path,
                                          std::error_code(code, std::generic_category()));
}

std::string reason(int code) { return std::generic_category().message(code); }

std::int64_t modified(const struct stat& info) {
  return info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
}

// At `place` instead of what was there, or (null) wherever there is room.
void* map_bytes(int fd, std::int64_t size, void* place = nullptr) {
  const int flags = MAP_SHARED | (place == nullptr ? 0 : MAP_FIXED);
  return mmap(place, static_cast<std::size_t>(size), PROT_READ, flags, fd, 0);
}

void unmap(const std::byte* data, std::int64_t size) {
  munmap(const_cast<std::byte*>(data), static_cast<std::size_t>(size));
}

// A quarter of the descriptors that the process may have, at most `cap` and at least one.
std::size_t quarter_of_descriptors(std::size_t cap) {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
  return std::clamp<std::size_t>(static_cast<std::size_t>(limit.rlim_cur / 4), 1, cap);
}

}  // namespace

// A file beyond the caps, while it is in use: a descriptor of its own, a mapping of its own, or
// both.
struct SharedFile::OnDemand {
  Descriptor descriptor{-1};
  std::shared_ptr<const std::byte> data;
};

// All open files of the process, and the lock of everything that opens, maps or finds them. Across
// a fork the lock is held, so that the child finds it free.
class OpenFiles {
 public:
  using Key = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t>;  // device, inode, size, time

  static OpenFiles& instance() {
    static OpenFiles files;
    return files;
  }

  std::mutex mutex;
  std::map<Key, std::weak_ptr<SharedFile>> files;
  std::list<std::pair<SharedFile*, std::shared_ptr<SharedFile::OnDemand>>> on_demand;  // LRU last
  int mapped = 0;               // token files that stay so
  std::size_t descriptors = 0;  // that stay open

  static Key key(const SharedFile& file) {
    return {file.device_, file.inode_, file.size_, file.modified_};
  }

  void forget(SharedFile* file) {
    std::erase_if(on_demand, [&](const auto& entry) { return entry.first == file; });
  }

  // Unless another object has taken its place meanwhile.
  void remove(const SharedFile& file) {
    const auto found = files.find(key(file));
    if (found == files.end()) return;
    const auto own = file.weak_from_this();
    if (found->second.owner_before(own) || own.owner_before(found->second)) return;
    files.erase(found);
  }

 private:
  OpenFiles() {
    pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                   [] { instance().mutex.unlock(); });
  }
};

std::shared_ptr<SharedFile> SharedFile::open(const FileName& name, Kind kind) {
  OpenFiles& all = OpenFiles::instance();
  std::shared_ptr<SharedFile> known;  // outside the lock, which its last owner takes
  const std::lock_guard lock(all.mutex);
  // By its facts first: a file that is open is not opened again.
  struct stat info = {};
  if (stat(name.path.c_str(), &info) == 0) {
    const auto found = all.files.find({info.st_dev, info.st_ino, info.st_size, modified(info)});
    if (found != all.files.end()) known = found->second.lock();
  }
  if (known && (kind == Kind::kTokens || known->data() != nullptr || known->size_ == 0)) {
    return known;
  }
  Descriptor fd = open_path(name.path);
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) throw_system_error(name, errno);
  if (S_ISDIR(info.st_mode)) throw_system_error(name, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw FormatError(name.text + ": not a regular file; only files that can be mapped are read");
  }
  auto file = std::make_shared<SharedFile>(
      Private(), FileName{std::filesystem::absolute(name.path).string(), name.text});
  file->size_ = info.st_size;
  file->device_ = info.st_dev;
  file->inode_ = info.st_ino;
  file->modified_ = modified(info);
  if (file->size_ > 0 && (kind == Kind::kIndex || all.mapped < kMaxMapped)) {
    void* data = map_bytes(fd.get(), file->size_);
    if (data == MAP_FAILED) throw_system_error(name, errno);
    file->data_ = static_cast<const std::byte*>(data);
    file->counts_as_mapped_ = kind == Kind::kTokens;
    all.mapped += kind == Kind::kTokens ? 1 : 0;
  }
  if (kind == Kind::kTokens && all.descriptors < quarter_of_descriptors(kMaxDescriptors)) {
    file->descriptor_ = fd.release();
    ++all.descriptors;
  }
  if (file->data() != nullptr && file->descriptor_ < 0) {
    file->witness_ = find_witness(fd.get(), file->size_);
  }
  all.files[OpenFiles::key(*file)] = file;
  return file;
}

SharedFile::SharedFile(Private, FileName name) : name_(std::move(name)) {}

SharedFile::~SharedFile() {
  OpenFiles& all = OpenFiles::instance();
  const std::lock_guard lock(all.mutex);
  all.forget(this);
  all.remove(*this);
  if (data() != nullptr) unmap(data(), size_);
  if (descriptor_ >= 0) close(descriptor_);
  all.mapped -= counts_as_mapped_ ? 1 : 0;
  all.descriptors -= descriptor_ >= 0 ? 1 : 0;
}

// The least recently used one makes room; whoever still reads from that keeps it until then.
std::shared_ptr<SharedFile::OnDemand> SharedFile::on_demand(bool mapped) {
  OpenFiles& all = OpenFiles::instance();
  const std::lock_guard lock(all.mutex);
  const auto entry = std::find_if(all.on_demand.begin(), all.on_demand.end(),
                                  [&](const auto& used) { return used.first == this; });
  if (entry != all.on_demand.end()) {
    all.on_demand.splice(all.on_demand.begin(), all.on_demand, entry);
  } else {
    // Room first, or the last descriptor that the process may have would be in its way.
    while (all.on_demand.size() >= quarter_of_descriptors(kMaxOnDemand)) all.on_demand.pop_back();
    auto opened = std::make_shared<OnDemand>();
    if (descriptor_ < 0) {
      Descriptor fd = open_path(name_.path);
      struct stat info = {};
      if (fd.get() < 0 || fstat(fd.get(), &info) != 0) {
        throw_error(0, "it cannot be opened again (" + reason(errno) + ")");
      }
      ++reopens_;
      if (OpenFiles::Key(info.st_dev, info.st_ino, info.st_size, modified(info)) !=
          OpenFiles::key(*this)) {
        throw_error(std::min<std::int64_t>(info.st_size, size_),
                    "it was replaced since it was opened first: its name stands for another "
                    "file, or for other content");
      }
      opened = std::make_shared<OnDemand>(std::move(fd), nullptr);
    }
    all.on_demand.emplace_front(this, std::move(opened));
  }
  const std::shared_ptr<OnDemand>& used = all.on_demand.front().second;
  if (mapped && used->data == nullptr) {
    const int fd = descriptor_ >= 0 ? descriptor_ : used->descriptor.get();
    void* data = map_bytes(fd, size_);
    if (data == MAP_FAILED) throw_error(0, "it cannot be mapped (" + reason(errno) + ")");
    used->data = {static_cast<const std::byte*>(data),
                  [size = size_](const std::byte* p) { unmap(p, size); }};
  }
  return used;
}

std::shared_ptr<const std::byte> SharedFile::map() {
  if (size_ == 0) return nullptr;
  if (data() != nullptr) return {shared_from_this(), data()};
  return on_demand(true)->data;
}

void SharedFile::read(std::int64_t offset, std::int64_t count, void* out) {
  std::shared_ptr<OnDemand> used;
  if (descriptor_ < 0) used = on_demand(false);
  const int fd = used == nullptr ? descriptor_ : used->descriptor.get();
  auto* to = static_cast<std::byte*>(out);
  while (count > 0) {
    const ssize_t got = pread(fd, to, static_cast<std::size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_error(offset, "the system cannot read it (" + reason(errno) + ")");
    if (got == 0) fail(offset);
    to += got;
    offset += got;
    count -= got;
  }
}

void SharedFile::check(std::int64_t offset) {
  struct stat info = {};
  if (descriptor_ >= 0) {
    if (fstat(descriptor_, &info) != 0) throw_error(offset, reason(errno));
  } else if (stat(name_.path.c_str(), &info) != 0 || info.st_dev != device_ ||
             info.st_ino != inode_) {
    // The name has gone to another file. Was ours cut before?
    if (data() != nullptr && !ends_as_opened()) {
      throw_error(offset, "it shrank since it was opened, and its name stands for another file");
    }
    return;
  }
  // Wherever the cut is: what is before it may be new, in a file that is written once more.
  if (info.st_size < size_) throw_size(info.st_size, std::max<std::int64_t>(offset, info.st_size));
  if (info.st_size != size_ || modified(info) != modified_) {
    throw_error(offset, "it was written to since it was opened");
  }
}

// In the last bytes only: a cut before them takes whole pages away, which reads notice.
SharedFile::Witness SharedFile::find_witness(int fd, std::int64_t size) {
  std::array<std::byte, 4096> end{};
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(end.size(), size));
  const std::int64_t begin = size - count;
  for (std::int64_t i = pread(fd, end.data(), static_cast<std::size_t>(count), begin); i-- > 0;) {
    const std::byte value = end[static_cast<std::size_t>(i)];
    if (value != std::byte{0}) return {begin + i, value};
  }
  return {size - 1, std::byte{0}};
}

bool SharedFile::ends_as_opened() const {
  const std::lock_guard lock(OpenFiles::instance().mutex);  // or it might be renewed meanwhile
  const volatile std::byte* at = data() + witness_.place;
  volatile bool same = false;
  return read_guarded([&] { same = *at == witness_.value; }) && same;
}

void SharedFile::fail(std::int64_t offset) {
  check(offset);
  throw_error(offset, "it shrank since it was opened, or these bytes cannot be read");
}

void SharedFile::throw_size(std::int64_t found, std::int64_t offset) {
  throw_error(offset, found < size_ ? "it shrank to " + std::to_string(found) + " bytes from the " +
                                          std::to_string(size_) + " that it had when it was opened"
                                    : "it has " + std::to_string(found) + " bytes, and had " +
                                          std::to_string(size_) + " when it was opened");
}

void SharedFile::throw_error(std::int64_t offset, const std::string& problem) {
  failed_ = true;
  throw ReadError("reading " + name_.text + " at byte " + std::to_string(offset) + ": " + problem +
                  ". Restore the file; the loader's state is unharmed: load it again, or make the "
                  "loader anew");
}

std::optional<std::int64_t> SharedFile::offset_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto inside = [&](const std::byte* data) {
    return data != nullptr && at >= data && at - data < size_;
  };
  if (inside(data())) return at - data();
  OpenFiles& all = OpenFiles::instance();
  const std::lock_guard lock(all.mutex);
  for (const auto& [file, used] : all.on_demand) {
    if (file == this && inside(used->data.get())) return at - used->data.get();
  }
  return std::nullopt;
}

void SharedFile::will_need(std::int64_t begin, std::int64_t end) const {
  if (descriptor_ >= 0) {
    posix_fadvise(descriptor_, begin, end - begin, POSIX_FADV_WILLNEED);
  } else if (data() != nullptr) {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    const std::int64_t from = begin / page * page;
    madvise(const_cast<std::byte*>(data()) + from, static_cast<std::size_t>(end - from),
            MADV_WILLNEED);
  }
}

void SharedFile::renew(const std::function<void()>& check_content) {
  if (!failed_) return;
  take_named_file();
  if (check_content) check_content();
  failed_ = false;
}

void SharedFile::take_named_file() {
  OpenFiles& all = OpenFiles::instance();
  const std::lock_guard lock(all.mutex);
  all.forget(this);
  const Descriptor fd = open_path(name_.path);
  struct stat info = {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) {
    throw_error(0, "it cannot be opened again (" + reason(errno) + ")");
  }
  ++reopens_;
  if (!S_ISREG(info.st_mode) || info.st_size != size_) throw_size(info.st_size, 0);
  if (data() != nullptr &&
      map_bytes(fd.get(), size_, const_cast<std::byte*>(data())) == MAP_FAILED) {
    throw_error(0, "it cannot be mapped (" + reason(errno) + ")");
  }
  if (descriptor_ >= 0 && dup3(fd.get(), descriptor_, O_CLOEXEC) < 0) {
    throw_error(0, "it cannot be opened again (" + reason(errno) + ")");
  }
  if (data() != nullptr && descriptor_ < 0) witness_ = find_witness(fd.get(), size_);
  all.remove(*this);
  device_ = info.st_dev;
  inode_ = info.st_ino;
  modified_ = modified(info);
  all.files[OpenFiles::key(*this)] = weak_from_this();
  renewals_.fetch_add(1, std::memory_order_release);
}

}  // namespace brimful
