#include "tensor/dtype.h"

#include "base/error.h"

namespace dgemma {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  BlockShape shape;
};

constexpr Row kTable[] = {
    {DType::f32, "F32", {1, 4}},         {DType::f16, "F16", {1, 2}},           {DType::q4_0, "Q4_0", {32, 18}},
    {DType::q4_1, "Q4_1", {32, 20}},     {DType::q5_0, "Q5_0", {32, 22}},       {DType::q5_1, "Q5_1", {32, 24}},
    {DType::q8_0, "Q8_0", {32, 34}},     {DType::q2_k, "Q2_K", {256, 84}},      {DType::q3_k, "Q3_K", {256, 110}},
    {DType::q4_k, "Q4_K", {256, 144}},   {DType::q5_k, "Q5_K", {256, 176}},     {DType::q6_k, "Q6_K", {256, 210}},
    {DType::iq4_nl, "IQ4_NL", {32, 18}}, {DType::iq4_xs, "IQ4_XS", {256, 136}}, {DType::i8, "I8", {1, 1}},
    {DType::i16, "I16", {1, 2}},         {DType::i32, "I32", {1, 4}},           {DType::i64, "I64", {1, 8}},
    {DType::f64, "F64", {1, 8}},         {DType::bf16, "BF16", {1, 2}},         {DType::mxfp4, "MXFP4", {32, 17}},
    {DType::nvfp4, "NVFP4", {64, 36}},
};

const Row& row_of(DType dtype) {
  for (const Row& row : kTable) {
    if (row.dtype == dtype) return row;
  }
  fail(ErrorKind::internal, "dtype {} has no row in the table", static_cast<std::uint32_t>(dtype));
}

}  // namespace

BlockShape block_shape(DType dtype) { return row_of(dtype).shape; }

std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_from_ggml(std::uint32_t id) {
  for (const Row& row : kTable) {
    if (static_cast<std::uint32_t>(row.dtype) == id) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace dgemma
