// A file mapped into memory, read-only, for as long as a copy of `data` lives. The size is that at
// open: who reads later must expect that the file has shrunk since (corpus/read_guard.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace brimful {

// A path as the system knows it, and as text for messages: the two differ where a name is not
// UTF-8.
struct FileName {
  std::string path;
  std::string text;
};

struct MappedFile {
  std::shared_ptr<const std::byte> data;  // null for an empty file
  std::int64_t size = 0;                  // bytes
};

// Throws std::filesystem::filesystem_error with the system's code when the file cannot be opened
// (absent, no permission), FormatError when it is no regular file.
MappedFile map_file(const FileName& name);

}  // namespace brimful
