// Megatron .bin/.idx. The index, little-endian: "MMIDIDX\0\0", u64 version 1, u8 dtype code, u64
// sequences, u64 document entries; then int32 lengths[sequences], int64 pointers[sequences] (bytes)
// and int64 documents[entries], which go from 0 to the number of sequences. 34 bytes of header make
// every array unaligned.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "corpus/formats.hpp"
#include "corpus/read_guard.hpp"

namespace brimful {
namespace {

constexpr std::array<char, 9> kMagic{'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr std::int64_t kHeaderBytes = 34;

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

TokenType dtype_of_code(const FileName& idx, std::uint8_t code) {
  constexpr std::array<TokenType, 6> kTypes{TokenType::kU8,  TokenType::kI8,  TokenType::kI16,
                                            TokenType::kI32, TokenType::kI64, TokenType::kU16};
  constexpr std::array<std::uint8_t, 6> kCodes{1, 2, 3, 4, 5, 8};
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    if (kCodes[i] == code) return kTypes[i];
  }
  const std::string problem = code == 6   ? " is float64, which holds no tokens"
                              : code == 7 ? " is float32, which holds no tokens"
                                          : " is unknown";
  throw FormatError(
      idx.text + ": dtype code " + std::to_string(code) + problem +
      "; expected 1 (uint8), 2 (int8), 3 (int16), 4 (int32), 5 (int64) or 8 (uint16)");
}

// Reads of a mapped file; it may shrink under them.
template <class Body>
void guarded(SharedFile& file, const Body& body) {
  if (!read_guarded(body)) throw_read_error(file);
}

struct Index {
  std::shared_ptr<SharedFile> file;
  TokenType type = TokenType::kU16;
  std::int64_t num_sequences = 0;
  std::int64_t num_documents = 0;
  const std::byte* lengths = nullptr;
  const std::byte* pointers = nullptr;
  const std::byte* documents = nullptr;  // int64 [num_documents + 1]
};

Index read_header(const FileName& name) {
  Index index{.file = SharedFile::open(name, SharedFile::Kind::kIndex)};
  const std::byte* data = index.file->data();
  const std::int64_t size = index.file->size();
  std::array<std::byte, kHeaderBytes> header;
  if (size < kHeaderBytes) {
    throw FormatError(name.text + ": " + std::to_string(size) +
                      " bytes; a Megatron index has at least 34");
  }
  guarded(*index.file, [&] { std::memcpy(header.data(), data, header.size()); });
  if (std::memcmp(header.data(), kMagic.data(), kMagic.size()) != 0) {
    throw FormatError(name.text + ": does not begin with MMIDIDX; not a Megatron index");
  }
  const auto version = load<std::uint64_t>(header.data() + 9);
  if (version != 1) {
    throw FormatError(name.text + ": index version " + std::to_string(version) + "; expected 1");
  }
  index.type = dtype_of_code(name, load<std::uint8_t>(header.data() + 17));
  const auto sequences = load<std::uint64_t>(header.data() + 18);
  const auto entries = load<std::uint64_t>(header.data() + 26);
  const auto limit = static_cast<std::uint64_t>(size);
  const bool fits = sequences <= limit / 12 && entries <= limit / 8;
  const std::uint64_t expected = fits ? kHeaderBytes + 12 * sequences + 8 * entries : 0;
  if (expected != limit) {
    throw FormatError(name.text + ": " + std::to_string(size) + " bytes, but a header of " +
                      std::to_string(sequences) + " sequences and " + std::to_string(entries) +
                      " document entries needs 34 + 12 x sequences + 8 x entries" +
                      (fits ? " = " + std::to_string(expected) : "") +
                      "; the index is truncated or of another kind (multimodal ones are not read)");
  }
  if (entries == 0) {
    throw FormatError(name.text +
                      ": an empty document index; expected one entry more than documents");
  }
  index.num_sequences = static_cast<std::int64_t>(sequences);
  index.num_documents = static_cast<std::int64_t>(entries) - 1;
  index.lengths = data + kHeaderBytes;
  index.pointers = index.lengths + 4 * sequences;
  index.documents = index.pointers + 8 * sequences;
  return index;
}

// Nonzero unless all n lengths are >= 0, all n pointers are >= 0 and each of the n pointers that
// follow is its predecessor plus length x item_size. Sums wrap; a wrapped pointer is negative.
BRIMFUL_HOT std::uint64_t pointer_faults(const std::byte* lengths, const std::byte* pointers,
                                         std::int64_t n, std::int64_t item_size) {
  std::uint64_t faults = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t length = load<std::int32_t>(lengths + 4 * i);
    const auto pointer = load<std::uint64_t>(pointers + 8 * i);
    const auto next = load<std::uint64_t>(pointers + 8 * (i + 1));
    faults |= next ^ (pointer + static_cast<std::uint64_t>(length * item_size));
    faults |= (static_cast<std::uint64_t>(length) | pointer) >> 63;
  }
  return faults;
}

// Nonzero unless the n + 1 document entries ascend.
BRIMFUL_HOT std::uint64_t document_faults(const std::byte* documents, std::int64_t n) {
  std::uint64_t faults = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto document = load<std::int64_t>(documents + 8 * i);
    const auto next = load<std::int64_t>(documents + 8 * (i + 1));
    faults |= static_cast<std::uint64_t>(next < document);
  }
  return faults;
}

[[noreturn]] void throw_bad_pointer(const FileName& name, std::int64_t i, std::int64_t found,
                                    std::int64_t expected) {
  throw FormatError(name.text + ": pointer " + std::to_string(i) + " is " + std::to_string(found) +
                    ", expected " + std::to_string(expected) +
                    " (the pointer before it plus that sequence's bytes); the index was written "
                    "wrong, often by a 32-bit sum; brimful.repair.rebuild_pointers mends that");
}

// Every sequence begins where the one before it ends; returns where the last one ends, in bytes.
std::int64_t check_sequences(const FileName& name, const Index& index) {
  const std::int64_t n = index.num_sequences;
  if (n == 0) return 0;
  const auto size = static_cast<std::int64_t>(item_size(index.type));
  const auto length = [&](std::int64_t i) {
    return std::int64_t{load<std::int32_t>(index.lengths + 4 * i)};
  };
  const auto pointer = [&](std::int64_t i) { return load<std::int64_t>(index.pointers + 8 * i); };
  if (pointer(0) != 0) throw_bad_pointer(name, 0, pointer(0), 0);
  const std::uint64_t faults = pointer_faults(index.lengths, index.pointers, n - 1, size);
  const bool good = faults == 0 && length(n - 1) >= 0 && pointer(n - 1) >= 0;
  for (std::int64_t i = 0; !good && i < n; ++i) {
    if (length(i) < 0) {
      throw FormatError(name.text + ": sequence " + std::to_string(i) + " has length " +
                        std::to_string(length(i)) + "; a length is 0 or greater");
    }
    if (i == 0) continue;
    const std::int64_t expected = pointer(i - 1) + length(i - 1) * size;
    if (pointer(i) != expected) throw_bad_pointer(name, i, pointer(i), expected);
  }
  return pointer(n - 1) + length(n - 1) * size;
}

void check_documents(const FileName& name, const Index& index) {
  const std::int64_t n = index.num_documents;
  const auto entry = [&](std::int64_t i) { return load<std::int64_t>(index.documents + 8 * i); };
  if (entry(0) != 0) {
    throw FormatError(name.text + ": the document index begins with " + std::to_string(entry(0)) +
                      ", expected 0");
  }
  if (entry(n) != index.num_sequences) {
    throw FormatError(name.text + ": the document index ends with " + std::to_string(entry(n)) +
                      ", but there are " + std::to_string(index.num_sequences) +
                      " sequences; the two must be equal");
  }
  if (document_faults(index.documents, n) == 0) return;
  std::int64_t i = 1;
  while (i < n && entry(i) >= entry(i - 1)) ++i;
  throw FormatError(name.text + ": document entry " + std::to_string(i) + " is " +
                    std::to_string(entry(i)) + " after " + std::to_string(entry(i - 1)) +
                    "; the document index ascends");
}

// All that can be wrong with an index; returns the bytes of tokens that it describes.
std::int64_t check_index(const FileName& name, const Index& index) {
  std::int64_t end = 0;
  guarded(*index.file, [&] {
    end = check_sequences(name, index);
    check_documents(name, index);
  });
  return end;
}

// A repaired index stands at the same addresses, so it must be that of the same tokens.
void recheck_index(const FileName& name, const Index& was, std::int64_t end) {
  const Index index = read_header(name);
  if (index.file != was.file || index.type != was.type ||
      index.num_sequences != was.num_sequences || check_index(name, index) != end) {
    throw FormatError(name.text +
                      ": describes other tokens than when it was opened; open it again");
  }
}

// Adds the loss mask. Its counts speak of documents, so they are no use where units are sequences.
void add_loss_mask(TokenStore& store, const FileName& name, std::int64_t num_documents,
                   MegatronUnit unit) {
  const auto file = SharedFile::open(name, SharedFile::Kind::kIndex);
  const std::int64_t expected = store.num_tokens + 8 * num_documents;
  if (file->size() != expected) {
    throw FormatError(name.text + ": " + std::to_string(file->size()) + " bytes, expected " +
                      std::to_string(expected) + ": one for each of " +
                      std::to_string(store.num_tokens) + " tokens and eight for each of " +
                      std::to_string(num_documents) + " documents");
  }
  store.loss_file = file;
  store.loss_mask = reinterpret_cast<const std::uint8_t*>(file->data());
  if (unit == MegatronUnit::kSequences) return;
  store.effective = file->data() + store.num_tokens;
  guarded(*file, [&] {
    for (std::int64_t i = 0; i < num_documents; ++i) {
      const auto count = load<std::int64_t>(store.effective + 8 * i);
      const std::int64_t most = std::max<std::int64_t>(store.documents[i].length - 1, 0);
      if (count < 0 || count > most) {
        throw FormatError(name.text + ": document " + std::to_string(i) + " counts " +
                          std::to_string(count) + " effective tokens, expected 0 to " +
                          std::to_string(most));
      }
    }
  });
}

}  // namespace

std::optional<MegatronUnit> parse_megatron_unit(std::string_view name) {
  if (name == "documents") return MegatronUnit::kDocuments;
  if (name == "sequences") return MegatronUnit::kSequences;
  return std::nullopt;
}

TokenStore open_megatron(const FileName& bin, const FileName& idx,
                         const std::optional<FileName>& loss, MegatronUnit unit,
                         std::optional<TokenType> declared) {
  const Index index = read_header(idx);
  check_declared(idx, index.type, declared);
  const auto tokens = SharedFile::open(bin, SharedFile::Kind::kTokens);
  const std::int64_t end = check_index(idx, index);
  if (end != tokens->size()) {
    throw FormatError(bin.text + ": " + std::to_string(tokens->size()) + " bytes, but " + idx.text +
                      " describes " + std::to_string(end) +
                      "; one of the two is truncated or belongs to another file");
  }

  const std::size_t size = item_size(index.type);
  TokenStore store = store_of(bin, tokens, 0, index.type);
  store.index_file = index.file;
  store.check_index = [idx, index, end] { recheck_index(idx, index, end); };
  store.documents =
      unit == MegatronUnit::kSequences
          ? Extents::megatron(index.num_sequences, index.lengths, index.pointers, size)
          : Extents::megatron_documents(index.num_documents, index.documents, index.num_sequences,
                                        index.pointers, size, store.num_tokens);
  if (loss) add_loss_mask(store, *loss, index.num_documents, unit);
  return store;
}

}  // namespace brimful
