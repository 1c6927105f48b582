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

// What stands at the start of a text that is not empty (Unicode 15, table 3-7): the length 1 .. 4 of a whole character;
// 0 when the first byte belongs to no character; -1 when the text ends inside a character.
inline int utf8_character(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const int length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (int i = 1; i < length; ++i) {
    if (static_cast<std::size_t>(i) == text.size()) return -1;
    std::uint8_t low = 0x80, high = 0xBF;
    if (i == 1) {
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    }
    const auto byte = static_cast<std::uint8_t>(text[static_cast<std::size_t>(i)]);
    if (byte < low || byte > high) return 0;
  }
  return length;
}

// Offset of the first byte that is not part of a valid character, or npos.
inline std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const int length = utf8_character(text.substr(at));
    if (length <= 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return std::string_view::npos;
}

}  // namespace dgemma
