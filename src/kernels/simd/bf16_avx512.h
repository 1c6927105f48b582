// bfloat16 for AVX-512 vectors.
constexpr int kBf16TileRows = 12;  // 24 accumulators, 2 to 6 operands of 32 registers
inline void store_bf16(std::uint16_t* p, Vector x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
inline void store_words(std::uint32_t* p, IntVector words) { _mm512_storeu_si512(p, words.v); }
template <int kByte>
inline Vector byte_plus_256(IntVector words) {
  constexpr int kShift = 15 - 8 * kByte;
  const __m512i moved = kShift > 0 ? _mm512_slli_epi32(words.v, kShift < 0 ? 0u : static_cast<unsigned>(kShift))
                                   : _mm512_srli_epi32(words.v, kShift > 0 ? 0u : static_cast<unsigned>(-kShift));
  constexpr int kAndOr = 0xea;  // (a & b) | c
  return {_mm512_castsi512_ps(
      _mm512_ternarylogic_epi32(moved, _mm512_set1_epi32(0x007f8000), _mm512_set1_epi32(0x43800000), kAndOr))};
}
inline IntVector pair_bf16(Vector low, Vector high) {
  const __m512i a = _mm512_add_epi32(_mm512_castps_si512(low.v), _mm512_set1_epi32(0x7fff));
  const __m512i b = _mm512_add_epi32(_mm512_castps_si512(high.v), _mm512_set1_epi32(0x8000));
  return {_mm512_mask_blend_epi16(0xaaaaaaaau, _mm512_srli_epi32(a, 16), b)};
}
inline Vector low_bf16(IntVector pair) { return {_mm512_castsi512_ps(_mm512_slli_epi32(pair.v, 16))}; }
inline Vector high_bf16(IntVector pair) {
  return {_mm512_castsi512_ps(_mm512_and_si512(pair.v, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
}
