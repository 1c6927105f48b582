// bfloat16 for one-lane vectors, and the shape that every other bf16 header has.
constexpr int kBf16TileRows = 4;
// Rounded to nearest even; a NaN may become infinite.
inline void store_bf16(std::uint16_t* p, Vector x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x.v, 4);
  *p = static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
inline void store_words(std::uint32_t* p, IntVector words) { *p = static_cast<std::uint32_t>(words.v); }
// 256 + a byte of the word, which is the byte put into the fraction of 256.
template <int kByte>
inline Vector byte_plus_256(IntVector words) {
  return {static_cast<float>(256 + ((static_cast<std::uint32_t>(words.v) >> (8 * kByte)) & 255u))};
}
// Both rounded to nearest; what lies half-way goes down in `low` and up in `high`, so that many of them balance.
// (Products of short scales and codes are often half-way. Nearest even would take two more operations.)
inline IntVector pair_bf16(Vector low, Vector high) {
  std::uint32_t a, b;
  __builtin_memcpy(&a, &low.v, 4);
  __builtin_memcpy(&b, &high.v, 4);
  return {static_cast<std::int32_t>(((a + 0x7fffu) >> 16) | ((b + 0x8000u) & 0xffff0000u))};
}
inline Vector low_bf16(IntVector pair) {
  const std::uint32_t bits = static_cast<std::uint32_t>(pair.v) << 16;
  Vector out;
  __builtin_memcpy(&out.v, &bits, 4);
  return out;
}
inline Vector high_bf16(IntVector pair) {
  const std::uint32_t bits = static_cast<std::uint32_t>(pair.v) & 0xffff0000u;
  Vector out;
  __builtin_memcpy(&out.v, &bits, 4);
  return out;
}
