// Integer lanes for one-lane vectors.
struct IntVector {
  std::int32_t v;
};
constexpr int kInt8Rows = 4;
inline IntVector int_broadcast(std::int32_t value) { return {value}; }
inline IntVector load_words(const std::uint32_t* p) { return {static_cast<std::int32_t>(*p)}; }
inline IntVector broadcast_word(const std::int8_t* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, 4);
  return {word};
}
// acc + the sum of four products of an unsigned byte of w and a signed byte of x, in each lane; kWide: bytes of w may
// exceed 127.
template <bool kWide>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  for (int i = 0; i < 4; ++i) {
    acc.v += static_cast<std::uint8_t>(w.v >> (8 * i)) * static_cast<std::int8_t>(x.v >> (8 * i));
  }
  return acc;
}
inline Vector to_float(IntVector a) { return {static_cast<float>(a.v)}; }
// Whole numbers -127 .. 127 as bytes.
inline void store_bytes(std::int8_t* p, Vector x) { *p = static_cast<std::int8_t>(x.v); }
// out[j * kPanelRows + i] = word j of row i, for kLanes rows and kLanes words.
inline void transpose_words(const std::uint8_t* in, std::int64_t, std::uint32_t* out) { __builtin_memcpy(out, in, 4); }
