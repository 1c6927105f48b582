// acc + two products of bfloat16 pairs, where the machine has no instruction for it: multiply-adds on the widened
// numbers, the even input first.
inline Vector dot2(Vector acc, IntVector w, IntVector x) {
  return fma(high_bf16(w), high_bf16(x), fma(low_bf16(w), low_bf16(x), acc));
}
