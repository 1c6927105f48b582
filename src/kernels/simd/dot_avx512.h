// Byte products without VNNI (as in dot_avx2.h): AVX-512 BW.
template <bool kWide>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  const __m512i ones = _mm512_set1_epi16(1);
  if constexpr (kWide) {
    const __m512i low_bit = _mm512_set1_epi8(1);
    const __m512i upper = _mm512_and_si512(_mm512_srli_epi16(w.v, 1), _mm512_set1_epi8(127));
    const __m512i pairs = _mm512_madd_epi16(_mm512_maddubs_epi16(upper, x.v), _mm512_set1_epi16(2));
    const __m512i rest = _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_and_si512(w.v, low_bit), x.v), ones);
    return {_mm512_add_epi32(acc.v, _mm512_add_epi32(pairs, rest))};
  } else {
    return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(_mm512_maddubs_epi16(w.v, x.v), ones))};
  }
}
