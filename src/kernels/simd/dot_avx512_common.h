// Integer lanes for AVX-512 vectors; dot4 is in dot_avx512.h or dot_avx512_vnni.h.
struct IntVector {
  __m512i v;
};
constexpr int kInt8Rows = 6;  // 12 + 12 accumulators of 32 registers
inline IntVector int_broadcast(std::int32_t value) { return {_mm512_set1_epi32(value)}; }
inline IntVector load_words(const std::uint32_t* p) { return {_mm512_loadu_si512(p)}; }
inline IntVector broadcast_word(const std::int8_t* p) {
  int word;
  __builtin_memcpy(&word, p, 4);
  return {_mm512_set1_epi32(word)};
}
inline Vector to_float(IntVector a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline void store_bytes(std::int8_t* p, Vector x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x.v)));
}
// out[w] = word w of 16 rows.
inline void transpose_sixteen(const std::uint8_t* in, std::int64_t stride, __m512i* out) {
  __m512i a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(in + i * stride);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  // Now 128-bit lane l of a[4 g + c] holds word 4 l + c of rows 4 g .. 4 g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x44),
                  high01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xee);
    const __m512i low23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x44);
    const __m512i high23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xee);
    out[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    out[4 + c] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    out[8 + c] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    out[12 + c] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
}
inline void transpose_words(const std::uint8_t* in, std::int64_t stride, std::uint32_t* out) {
  __m512i words[16];
  transpose_sixteen(in, stride, words);
  for (int w = 0; w < 16; ++w) _mm512_storeu_si512(out + w * kPanelRows, words[w]);
}
