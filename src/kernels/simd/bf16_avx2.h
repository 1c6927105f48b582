// bfloat16 for AVX2 vectors.
constexpr int kBf16TileRows = 4;  // 8 accumulators, 4 + 2 operands of 16 registers
inline void store_bf16(std::uint16_t* p, Vector x) {
  const __m256i bits = _mm256_castps_si256(x.v);
  const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff)));
  const __m256i top = _mm256_srli_epi32(rounded, 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1)));
}
inline void store_words(std::uint32_t* p, IntVector words) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words.v);
}
template <int kByte>
inline Vector byte_plus_256(IntVector words) {
  constexpr int kShift = 15 - 8 * kByte;
  const __m256i moved = kShift > 0 ? _mm256_slli_epi32(words.v, kShift < 0 ? 0 : kShift)
                                   : _mm256_srli_epi32(words.v, kShift > 0 ? 0 : -kShift);
  const __m256i fraction = _mm256_and_si256(moved, _mm256_set1_epi32(0x007f8000));
  return {_mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x43800000)))};
}
inline IntVector pair_bf16(Vector low, Vector high) {
  const __m256i a = _mm256_add_epi32(_mm256_castps_si256(low.v), _mm256_set1_epi32(0x7fff));
  const __m256i b = _mm256_add_epi32(_mm256_castps_si256(high.v), _mm256_set1_epi32(0x8000));
  return {_mm256_blend_epi16(_mm256_srli_epi32(a, 16), b, 0xaa)};
}
inline Vector low_bf16(IntVector pair) { return {_mm256_castsi256_ps(_mm256_slli_epi32(pair.v, 16))}; }
inline Vector high_bf16(IntVector pair) {
  return {_mm256_castsi256_ps(_mm256_and_si256(pair.v, _mm256_set1_epi32(static_cast<int>(0xffff0000u))))};
}
