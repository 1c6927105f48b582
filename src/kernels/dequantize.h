// Stored weights to float: one function for each ggml block type (layouts: docs on GGUF, ggml's block table). Portable
// loops over sub-blocks, written for the compiler's vectoriser. Every bit pattern decodes to something (perhaps an
// infinity or a NaN); nothing is read beyond elements / block elements * block bytes.
#pragma once

#include <cstdint>

namespace dgemma {

// blocks: whole blocks, at any alignment. out: [elements]. elements: a multiple of the block's elements.
using DequantizeFunction = void (*)(const void* blocks, float* out, std::int64_t elements);

void dequantize_f32(const void* blocks, float* out, std::int64_t elements);
void dequantize_f16(const void* blocks, float* out, std::int64_t elements);
void dequantize_bf16(const void* blocks, float* out, std::int64_t elements);

// Blocks of 32.
void dequantize_q4_0(const void* blocks, float* out, std::int64_t elements);
void dequantize_q4_1(const void* blocks, float* out, std::int64_t elements);
void dequantize_q5_0(const void* blocks, float* out, std::int64_t elements);
void dequantize_q5_1(const void* blocks, float* out, std::int64_t elements);
void dequantize_q8_0(const void* blocks, float* out, std::int64_t elements);
void dequantize_iq4_nl(const void* blocks, float* out, std::int64_t elements);
// A scale byte of 255 is 2^127 times the entry, as in ggml (the OCP text calls it NaN).
void dequantize_mxfp4(const void* blocks, float* out, std::int64_t elements);

// Blocks of 64. Scales are unsigned E4M3; 0x7F decodes to zero, as in ggml. The tensor's own factor, which GGUF keeps
// in a second tensor, is not applied.
void dequantize_nvfp4(const void* blocks, float* out, std::int64_t elements);

// Blocks of 256.
void dequantize_q2_k(const void* blocks, float* out, std::int64_t elements);
void dequantize_q3_k(const void* blocks, float* out, std::int64_t elements);
void dequantize_q4_k(const void* blocks, float* out, std::int64_t elements);
void dequantize_q5_k(const void* blocks, float* out, std::int64_t elements);
void dequantize_q6_k(const void* blocks, float* out, std::int64_t elements);
void dequantize_iq4_xs(const void* blocks, float* out, std::int64_t elements);

// The function for a ggml type id (0 is F32, 12 is Q4_K, 30 is BF16, ...); null when there is none.
DequantizeFunction dequantize_for(std::uint32_t ggml_type);

}  // namespace dgemma
