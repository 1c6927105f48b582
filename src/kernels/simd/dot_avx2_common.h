// Integer lanes for AVX2 vectors; dot4 is in dot_avx2.h or dot_avx_vnni.h.
struct IntVector {
  __m256i v;
};
constexpr int kInt8Rows = 3;  // 6 + 6 accumulators of 16 registers
inline IntVector int_broadcast(std::int32_t value) { return {_mm256_set1_epi32(value)}; }
inline IntVector load_words(const std::uint32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
inline IntVector broadcast_word(const std::int8_t* p) {
  int word;
  __builtin_memcpy(&word, p, 4);
  return {_mm256_set1_epi32(word)};
}
inline Vector to_float(IntVector a) { return {_mm256_cvtepi32_ps(a.v)}; }
inline void store_bytes(std::int8_t* p, Vector x) {
  const __m256i words = _mm256_cvtps_epi32(x.v);
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(halves, halves));
}
inline void transpose_words(const std::uint8_t* in, std::int64_t stride, std::uint32_t* out) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = _mm256_loadu_ps(reinterpret_cast<const float*>(in + i * stride));
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(reinterpret_cast<float*>(out + i * kPanelRows), _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
    _mm256_storeu_ps(reinterpret_cast<float*>(out + (i + 4) * kPanelRows),
                     _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
  }
}
