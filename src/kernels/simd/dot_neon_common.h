// Integer lanes for NEON vectors; dot4 is in dot_neon_dotprod.h or dot_neon_i8mm.h.
struct IntVector {
  int32x4_t v;
};
constexpr int kInt8Rows = 6;  // 12 + 12 accumulators of 32 registers
inline IntVector int_broadcast(std::int32_t value) { return {vdupq_n_s32(value)}; }
inline IntVector load_words(const std::uint32_t* p) { return {vreinterpretq_s32_u32(vld1q_u32(p))}; }
inline IntVector broadcast_word(const std::int8_t* p) {
  std::int32_t word;
  __builtin_memcpy(&word, p, 4);
  return {vdupq_n_s32(word)};
}
inline Vector to_float(IntVector a) { return {vcvtq_f32_s32(a.v)}; }
inline void store_bytes(std::int8_t* p, Vector x) {
  const int16x4_t halves = vqmovn_s32(vcvtnq_s32_f32(x.v));
  const int8x8_t bytes = vqmovn_s16(vcombine_s16(halves, halves));
  __builtin_memcpy(p, &bytes, 4);
}
inline void transpose_words(const std::uint8_t* in, std::int64_t stride, std::uint32_t* out) {
  uint32x4_t a[4];
  for (int i = 0; i < 4; ++i) a[i] = vreinterpretq_u32_u8(vld1q_u8(in + i * stride));
  const uint64x2_t even01 = vreinterpretq_u64_u32(vtrn1q_u32(a[0], a[1]));
  const uint64x2_t odd01 = vreinterpretq_u64_u32(vtrn2q_u32(a[0], a[1]));
  const uint64x2_t even23 = vreinterpretq_u64_u32(vtrn1q_u32(a[2], a[3]));
  const uint64x2_t odd23 = vreinterpretq_u64_u32(vtrn2q_u32(a[2], a[3]));
  vst1q_u32(out, vreinterpretq_u32_u64(vtrn1q_u64(even01, even23)));
  vst1q_u32(out + kPanelRows, vreinterpretq_u32_u64(vtrn1q_u64(odd01, odd23)));
  vst1q_u32(out + 2 * kPanelRows, vreinterpretq_u32_u64(vtrn2q_u64(even01, even23)));
  vst1q_u32(out + 3 * kPanelRows, vreinterpretq_u32_u64(vtrn2q_u64(odd01, odd23)));
}
