// Byte products of the dot-product extension, which multiplies signed by signed: bytes up to 127 are both. A wider byte
// w is 128 + (w xor 128) read as signed, and the products with 128 depend on x alone: made once for both columns.
template <bool kWide>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  const int8x16_t codes = vreinterpretq_s8_s32(w.v), values = vreinterpretq_s8_s32(x.v);
  if constexpr (kWide) {
    const int8x16_t flip = vdupq_n_s8(-128);
    const int32x4_t correction = vdotq_s32(vdupq_n_s32(0), flip, values);
    return {vsubq_s32(vdotq_s32(acc.v, veorq_s8(codes, flip), values), correction)};
  } else {
    return {vdotq_s32(acc.v, codes, values)};
  }
}
