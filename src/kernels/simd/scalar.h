// One lane a vector: the portable table, and the shape that every other simd header has.
struct Vector {
  float v;
};
constexpr int kLanes = 1;
constexpr int kTileRows = 2, kTileCols = 2;
inline Vector load(const float* p) { return {*p}; }
inline Vector load_partial(const float* p, int count) { return {count > 0 ? *p : 0.0f}; }
inline void store(float* p, Vector x) { *p = x.v; }
inline void store_partial(float* p, Vector x, int count) {
  if (count > 0) *p = x.v;
}
inline Vector broadcast(float x) { return {x}; }
inline Vector zero() { return {0.0f}; }
inline Vector add(Vector a, Vector b) { return {a.v + b.v}; }
inline Vector sub(Vector a, Vector b) { return {a.v - b.v}; }
inline Vector mul(Vector a, Vector b) { return {a.v * b.v}; }
inline Vector div(Vector a, Vector b) { return {a.v / b.v}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {a.v * b.v + c.v}; }
inline Vector max(Vector a, Vector b) { return {a.v > b.v ? a.v : b.v}; }
inline Vector min(Vector a, Vector b) { return {a.v < b.v ? a.v : b.v}; }
inline Vector round(Vector a) { return {__builtin_rintf(a.v)}; }
// 2^n for integral n in [-126, 127].
inline Vector exp2_integer(Vector n) {
  const int bits = (static_cast<int>(n.v) + 127) << 23;
  float out;
  __builtin_memcpy(&out, &bits, 4);
  return {out};
}
inline float sum_lanes(Vector a) { return a.v; }
inline float max_lanes(Vector a) { return a.v; }
