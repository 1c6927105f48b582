// Byte products in one instruction, unsigned by signed: USDOT of the 8-bit matrix extension.
template <bool>
inline IntVector dot4(IntVector acc, IntVector w, IntVector x) {
  return {vusdotq_s32(acc.v, vreinterpretq_u8_s32(w.v), vreinterpretq_s8_s32(x.v))};
}
