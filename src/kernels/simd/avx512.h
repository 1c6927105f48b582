// Sixteen lanes: AVX-512 F.
struct Vector {
  __m512 v;
};
constexpr int kLanes = 16;
constexpr int kTileRows = 4, kTileCols = 6;  // 24 accumulators, 4 + 1 operands of 32 registers
inline __mmask16 mask(int count) { return static_cast<__mmask16>((1u << count) - 1u); }
inline Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline Vector load_partial(const float* p, int count) { return {_mm512_maskz_loadu_ps(mask(count), p)}; }
inline void store(float* p, Vector x) { _mm512_storeu_ps(p, x.v); }
inline void store_partial(float* p, Vector x, int count) { _mm512_mask_storeu_ps(p, mask(count), x.v); }
inline Vector broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline Vector zero() { return {_mm512_setzero_ps()}; }
inline Vector add(Vector a, Vector b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vector sub(Vector a, Vector b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vector mul(Vector a, Vector b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vector div(Vector a, Vector b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vector round(Vector a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vector exp2_integer(Vector n) {
  const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
}
inline float sum_lanes(Vector a) { return _mm512_reduce_add_ps(a.v); }
inline float max_lanes(Vector a) { return _mm512_reduce_max_ps(a.v); }
