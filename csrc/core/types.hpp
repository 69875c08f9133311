// Vocabulary: the integer types that token files hold. Sizes in bytes; names are numpy's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace brimful {

enum class TokenType : std::uint8_t { kU8, kI8, kU16, kI16, kU32, kI32, kI64 };

struct TokenTypeInfo {
  TokenType type;
  std::string_view name;
  std::size_t size;
};

inline constexpr std::array<TokenTypeInfo, 7> kTokenTypes{{
    {TokenType::kU8, "uint8", 1},
    {TokenType::kI8, "int8", 1},
    {TokenType::kU16, "uint16", 2},
    {TokenType::kI16, "int16", 2},
    {TokenType::kU32, "uint32", 4},
    {TokenType::kI32, "int32", 4},
    {TokenType::kI64, "int64", 8},
}};

constexpr std::size_t item_size(TokenType type) {
  return kTokenTypes[static_cast<std::size_t>(type)].size;
}

constexpr std::string_view type_name(TokenType type) {
  return kTokenTypes[static_cast<std::size_t>(type)].name;
}

constexpr std::optional<TokenType> parse_token_type(std::string_view name) {
  for (const auto& info : kTokenTypes) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

// Calls f(std::type_identity<T>{}) with the C++ type of `type`.
template <class F>
decltype(auto) visit_type(TokenType type, F&& f) {
  switch (type) {
    case TokenType::kU8:
      return f(std::type_identity<std::uint8_t>{});
    case TokenType::kI8:
      return f(std::type_identity<std::int8_t>{});
    case TokenType::kU16:
      return f(std::type_identity<std::uint16_t>{});
    case TokenType::kI16:
      return f(std::type_identity<std::int16_t>{});
    case TokenType::kU32:
      return f(std::type_identity<std::uint32_t>{});
    case TokenType::kI32:
      return f(std::type_identity<std::int32_t>{});
    case TokenType::kI64:
      break;
  }
  return f(std::type_identity<std::int64_t>{});
}

}  // namespace brimful
