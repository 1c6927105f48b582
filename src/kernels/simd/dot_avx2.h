// Byte products without VNNI: pairs are added in 16 bits, where bytes of w up to 127 cannot saturate. Wider ones are
// multiplied as twice their upper seven bits, and their lowest.
template <bool kWide>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kWide) {
    const __m256i low_bit = _mm256_set1_epi8(1);
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(w.v, 1), _mm256_set1_epi8(127));
    const __m256i pairs = _mm256_madd_epi16(_mm256_maddubs_epi16(upper, x.v), _mm256_set1_epi16(2));
    const __m256i rest = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_and_si256(w.v, low_bit), x.v), ones);
    return {_mm256_add_epi32(acc.v, _mm256_add_epi32(pairs, rest))};
  } else {
    return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(_mm256_maddubs_epi16(w.v, x.v), ones))};
  }
}
