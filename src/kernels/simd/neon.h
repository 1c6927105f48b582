// Four lanes: Advanced SIMD of ARMv8.
struct Vector {
  float32x4_t v;
};
constexpr int kLanes = 4;
constexpr int kTileRows = 4, kTileCols = 6;  // 24 accumulators, 4 + 1 operands of 32 registers
inline Vector load(const float* p) { return {vld1q_f32(p)}; }
inline Vector load_partial(const float* p, int count) {
  if (count == kLanes) return load(p);
  float32x4_t out = vdupq_n_f32(0.0f);
  if (count > 0) out = vld1q_lane_f32(p, out, 0);
  if (count > 1) out = vld1q_lane_f32(p + 1, out, 1);
  if (count > 2) out = vld1q_lane_f32(p + 2, out, 2);
  return {out};
}
inline void store(float* p, Vector x) { vst1q_f32(p, x.v); }
inline void store_partial(float* p, Vector x, int count) {
  if (count == kLanes) return store(p, x);
  if (count > 0) vst1q_lane_f32(p, x.v, 0);
  if (count > 1) vst1q_lane_f32(p + 1, x.v, 1);
  if (count > 2) vst1q_lane_f32(p + 2, x.v, 2);
}
inline Vector broadcast(float x) { return {vdupq_n_f32(x)}; }
inline Vector zero() { return {vdupq_n_f32(0.0f)}; }
inline Vector add(Vector a, Vector b) { return {vaddq_f32(a.v, b.v)}; }
inline Vector sub(Vector a, Vector b) { return {vsubq_f32(a.v, b.v)}; }
inline Vector mul(Vector a, Vector b) { return {vmulq_f32(a.v, b.v)}; }
inline Vector div(Vector a, Vector b) { return {vdivq_f32(a.v, b.v)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
// By comparison, so that b comes out where one is a NaN, as in the other tables; FMAX would give the NaN.
inline Vector max(Vector a, Vector b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v)}; }
inline Vector round(Vector a) { return {vrndnq_f32(a.v)}; }
inline Vector exp2_integer(Vector n) {
  return {vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n.v), vdupq_n_s32(127)), 23))};
}
inline float sum_lanes(Vector a) { return vaddvq_f32(a.v); }
inline float max_lanes(Vector a) { return vmaxvq_f32(a.v); }
