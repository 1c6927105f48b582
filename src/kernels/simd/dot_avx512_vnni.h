// Byte products in one instruction: AVX-512 VNNI.
template <bool>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  return {_mm512_dpbusd_epi32(acc.v, w.v, x.v)};
}
