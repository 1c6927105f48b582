// Eight lanes: AVX2 with FMA.
struct Vector {
  __m256 v;
};
constexpr int kLanes = 8;
constexpr int kTileRows = 3, kTileCols = 4;  // 12 accumulators, 3 + 1 operands: all 16 registers
alignas(32) constexpr int kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
inline __m256i mask(int count) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - count)); }
inline Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline Vector load_partial(const float* p, int count) { return {_mm256_maskload_ps(p, mask(count))}; }
inline void store(float* p, Vector x) { _mm256_storeu_ps(p, x.v); }
inline void store_partial(float* p, Vector x, int count) { _mm256_maskstore_ps(p, mask(count), x.v); }
inline Vector broadcast(float x) { return {_mm256_set1_ps(x)}; }
inline Vector zero() { return {_mm256_setzero_ps()}; }
inline Vector add(Vector a, Vector b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vector sub(Vector a, Vector b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vector mul(Vector a, Vector b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vector div(Vector a, Vector b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vector max(Vector a, Vector b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vector round(Vector a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vector exp2_integer(Vector n) {
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23))};
}
inline float sum_lanes(Vector a) {
  const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
inline float max_lanes(Vector a) {
  const __m128 half = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 quarter = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(quarter, _mm_shuffle_ps(quarter, quarter, 1)));
}
