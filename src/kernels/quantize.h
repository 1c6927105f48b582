// Float to stored weights: the inverse of dequantize.h for the formats that dgemma writes. Values must be finite; a NaN
// gives some code, never undefined behaviour. Nothing is allocated.
#pragma once

#include <cstdint>

namespace dgemma {

// in: [elements]. blocks: elements / block elements * block bytes, at any alignment. elements: a multiple of the
// block's elements (1 for 16-bit floats, 32 for q?_0 and q?_1, 256 for q?_k).
using QuantizeFunction = void (*)(const float* in, void* blocks, std::int64_t elements);

// Round to nearest even; f16 overflows to infinity above 65504.
void quantize_f16(const float* in, void* blocks, std::int64_t elements);
void quantize_bf16(const float* in, void* blocks, std::int64_t elements);

// The bytes that ggml's reference encoders give: the scale comes from the block's extremes.
void quantize_q8_0(const float* in, void* blocks, std::int64_t elements);
void quantize_q4_0(const float* in, void* blocks, std::int64_t elements);
void quantize_q4_1(const float* in, void* blocks, std::int64_t elements);
void quantize_q5_0(const float* in, void* blocks, std::int64_t elements);
void quantize_q5_1(const float* in, void* blocks, std::int64_t elements);

// Scales by weighted least squares, larger values weighing more; the error is at most that of ggml's encoders without
// an importance matrix (measured in the tests), the bytes differ.
void quantize_q4_k(const float* in, void* blocks, std::int64_t elements);
void quantize_q5_k(const float* in, void* blocks, std::int64_t elements);
void quantize_q6_k(const float* in, void* blocks, std::int64_t elements);

// The function for a ggml type id; null when there is none.
QuantizeFunction quantize_for(std::uint32_t ggml_type);

}  // namespace dgemma
