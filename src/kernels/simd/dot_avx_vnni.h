// Byte products in one instruction: AVX-VNNI.
template <bool>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  return {_mm256_dpbusd_avx_epi32(acc.v, w.v, x.v)};
}
