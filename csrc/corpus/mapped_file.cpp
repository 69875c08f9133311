#include "corpus/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace brimful {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void throw_system_error(const FileName& name, int code) {
  throw std::filesystem::filesystem_error("cannot open a token file", name.path,
                                          std::error_code(code, std::generic_category()));
}

}  // namespace

MappedFile map_file(const FileName& name) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const Descriptor fd(open(name.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) throw_system_error(name, errno);
  if (S_ISDIR(info.st_mode)) throw_system_error(name, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    throw FormatError(name.text + ": not a regular file; only files that can be mapped are read");
  }
  if (info.st_size == 0) return {};
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) throw_system_error(name, errno);
  return {{static_cast<const std::byte*>(data),
           [bytes](const std::byte* p) { munmap(const_cast<std::byte*>(p), bytes); }},
          info.st_size};
}

}  // namespace brimful
