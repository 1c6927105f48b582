// acc + two products of bfloat16 pairs in one instruction: AVX-512 BF16.
inline Vector dot2(Vector acc, IntVector w, IntVector x) {
  return {_mm512_dpbf16_ps(acc.v, reinterpret_cast<__m512bh>(w.v), reinterpret_cast<__m512bh>(x.v))};
}
