// bfloat16 for NEON vectors.
constexpr int kBf16TileRows = 8;  // 16 accumulators, 4 + 2 widened operands of 32 registers
inline void store_bf16(std::uint16_t* p, Vector x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x.v);
  const uint32x4_t even = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(even, vdupq_n_u32(0x7fff)));
  vst1_u16(p, vshrn_n_u32(rounded, 16));
}
inline void store_words(std::uint32_t* p, IntVector words) { vst1q_u32(p, vreinterpretq_u32_s32(words.v)); }
template <int kByte>
inline Vector byte_plus_256(IntVector words) {
  constexpr int kShift = 15 - 8 * kByte;
  const uint32x4_t bits = vreinterpretq_u32_s32(words.v);
  uint32x4_t moved;
  if constexpr (kShift > 0) {
    moved = vshlq_n_u32(bits, kShift);
  } else {
    moved = vshrq_n_u32(bits, -kShift);
  }
  const uint32x4_t fraction = vandq_u32(moved, vdupq_n_u32(0x007f8000));
  return {vreinterpretq_f32_u32(vorrq_u32(fraction, vdupq_n_u32(0x43800000)))};
}
inline IntVector pair_bf16(Vector low, Vector high) {
  const uint32x4_t a = vaddq_u32(vreinterpretq_u32_f32(low.v), vdupq_n_u32(0x7fff));
  const uint32x4_t b = vaddq_u32(vreinterpretq_u32_f32(high.v), vdupq_n_u32(0x8000));
  return {vreinterpretq_s32_u32(vsriq_n_u32(b, a, 16))};
}
inline Vector low_bf16(IntVector pair) { return {vreinterpretq_f32_s32(vshlq_n_s32(pair.v, 16))}; }
inline Vector high_bf16(IntVector pair) {
  return {vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_s32(pair.v), vdupq_n_u32(0xffff0000u)))};
}
