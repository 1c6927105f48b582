// UTF-8 validity and lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dgemma {

// Bytes of the character that starts with `first`, which must start one.
inline std::size_t utf8_length(char first) {
  const auto byte = static_cast<std::uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Offset of the first byte that is not part of a valid character (Unicode 15, table 3-7), or npos.
inline std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) {
      return at + i < text.size() ? static_cast<std::uint8_t>(text[at + i]) : 0u;
    };
    const auto follows = [&](std::size_t i, std::uint32_t low, std::uint32_t high) {
      return byte(i) >= low && byte(i) <= high;
    };
    const std::uint32_t first = byte(0);
    std::size_t length = 0;
    if (first < 0x80) {
      length = 1;
    } else if (first >= 0xC2 && first <= 0xDF) {
      length = follows(1, 0x80, 0xBF) ? 2 : 0;
    } else if (first >= 0xE0 && first <= 0xEF) {
      const std::uint32_t low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
      length = follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
    } else if (first >= 0xF0 && first <= 0xF4) {
      const std::uint32_t low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
      length = follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
    }
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace dgemma
