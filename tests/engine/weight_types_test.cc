// The mixes on the shapes of the released model (26B-A4B) against the published files: counts of tensors by type from a
// dump of the Q4_K_M file, whose weights took 16,013 MiB of a user's device; and the sizes of the files of one type,
// which were published as 21, 25 and 47 GiB.
#include "engine/weight_types.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>

namespace dgemma {
namespace {

std::vector<TensorInfo> released_model(DType matrices) {
  std::vector<TensorInfo> out;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape, DType type) {
    out.push_back({std::move(name), type, std::move(shape), {}});
  };
  const auto vector = [&](std::string name, std::int64_t size) { add(std::move(name), {size}, DType::f32); };
  const auto matrix = [&](std::string name, std::int64_t rows, std::int64_t cols) {
    add(std::move(name), {rows, cols}, matrices);
  };
  matrix("token_embd.weight", 262144, 2816);
  vector("output_norm.weight", 2816);
  vector("rope_freqs.weight", 256);
  vector("self_cond_pre_norm.weight", 2816);
  matrix("self_cond_gate.weight", 2112, 2816);
  matrix("self_cond_up.weight", 2112, 2816);
  matrix("self_cond_down.weight", 2816, 2112);
  for (int layer = 0; layer < 30; ++layer) {
    const bool full = layer % 6 == 5;
    const std::string blk = fmt::format("blk.{}.", layer);
    const std::int64_t head = full ? 512 : 256, kv = full ? 2 : 8;
    for (const char* norm : {"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm_1", "pre_ffw_norm_2",
                             "post_ffw_norm_2", "post_ffw_norm"}) {
      vector(blk + norm + ".weight", 2816);
    }
    vector(blk + "attn_q_norm.weight", head);
    vector(blk + "attn_k_norm.weight", head);
    vector(blk + "ffn_gate_inp.scale", 2816);
    vector(blk + "ffn_down_exps.scale", 128);
    vector(blk + "layer_output_scale.weight", 1);
    vector(blk + "enc_layer_output_scale.weight", 1);
    matrix(blk + "ffn_gate_inp.weight", 128, 2816);
    matrix(blk + "attn_q.weight", 16 * head, 2816);
    matrix(blk + "attn_k.weight", kv * head, 2816);
    if (!full) matrix(blk + "attn_v.weight", kv * head, 2816);
    matrix(blk + "attn_output.weight", 2816, 16 * head);
    matrix(blk + "ffn_gate.weight", 2112, 2816);
    matrix(blk + "ffn_up.weight", 2112, 2816);
    matrix(blk + "ffn_down.weight", 2816, 2112);
    add(blk + "ffn_gate_up_exps.weight", {128, 1408, 2816}, matrices);
    add(blk + "ffn_down_exps.weight", {128, 2816, 704}, matrices);
  }
  return out;
}

struct Sum {
  std::map<std::string, int> tensors;
  std::int64_t bytes = 0;
};

Sum sum_of(WeightMix mix, DType matrices = DType::bf16) {
  const std::vector<TensorInfo> model = released_model(matrices);
  const std::vector<DType> types = weight_types(mix, model);
  Sum out;
  for (std::size_t i = 0; i < model.size(); ++i) {
    std::int64_t rows = 1;
    for (std::size_t k = 0; k + 1 < model[i].shape.size(); ++k) rows *= model[i].shape[k];
    ++out.tensors[std::string(dtype_name(types[i]))];
    out.bytes += rows * row_bytes(types[i], model[i].shape.back());
  }
  return out;
}

TEST(WeightTypes, PublishedFiles) {
  const Sum q4 = sum_of(WeightMix::q4_k_m);
  EXPECT_EQ(q4.tensors,
            (std::map<std::string, int>{{"F32", 423}, {"Q4_K", 194}, {"Q5_0", 33}, {"Q8_0", 28}, {"Q6_K", 14}}));
  EXPECT_EQ(q4.bytes >> 20, 16013);
  EXPECT_EQ(sum_of(WeightMix::q5_k_m).bytes >> 30, 17);  // published as 18: rounded
  EXPECT_EQ(sum_of(WeightMix::q6_k).bytes, 22'638'664'176);
  EXPECT_EQ(sum_of(WeightMix::q8_0).bytes, 26'863'004'912);
  EXPECT_EQ(sum_of(WeightMix::bf16).bytes, 50'525'008'112);
  EXPECT_EQ(sum_of(WeightMix::as_stored).bytes, 50'525'008'112);
}

TEST(WeightTypes, MoreBitsInTheLayersOfThePublishedFile) {
  const std::vector<TensorInfo> model = released_model(DType::bf16);
  const std::vector<DType> types = weight_types(WeightMix::q4_k_m, model);
  std::vector<int> q8;
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (!model[i].name.ends_with(".ffn_down.weight")) continue;
    if (types[i] == DType::q8_0) q8.push_back(std::stoi(model[i].name.substr(4)));
  }
  EXPECT_EQ(q8, (std::vector<int>{0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 26, 27, 28, 29}));
}

TEST(WeightTypes, RowsThatNoBlockDivides) {
  const std::vector<TensorInfo> tensors{{"blk.0.ffn_up.weight", DType::f32, {4, 80}, {}},
                                        {"blk.0.ffn_gate.weight", DType::bf16, {4, 80}, {}},
                                        {"blk.0.ffn_down.weight", DType::f16, {4, 96}, {}},
                                        {"positions", DType::i32, {4, 256}, {}}};
  EXPECT_EQ(weight_types(WeightMix::q4_k, tensors),
            (std::vector<DType>{DType::f16, DType::bf16, DType::q5_0, DType::i32}));
  EXPECT_EQ(weight_types(WeightMix::q8_0, tensors),
            (std::vector<DType>{DType::f16, DType::bf16, DType::q8_0, DType::i32}));
}

TEST(WeightTypes, NamesThatOnlyLookLikeLayers) {
  for (const char* name : {"blk.", "blk.x.attn_v.weight", "blk.-1.attn_v.weight", "blk.99999999999.attn_v.weight",
                           "blk.3", "blk.2147483647.attn_v.weight"}) {
    const std::vector<TensorInfo> tensors{{name, DType::f32, {4, 256}, {}}};
    EXPECT_EQ(weight_types(WeightMix::q4_k_m, tensors).size(), 1u) << name;
  }
}

TEST(WeightTypes, NamesAndFileTypes) {
  EXPECT_EQ(weight_mix_from_name("q4_k_m"), WeightMix::q4_k_m);
  EXPECT_EQ(weight_mix_from_name("Bf16"), WeightMix::bf16);
  EXPECT_EQ(weight_mix_from_name("Q3_K"), std::nullopt);
  for (const std::string& name : weight_mix_names()) EXPECT_TRUE(weight_mix_from_name(name)) << name;
  EXPECT_EQ(file_type(WeightMix::q4_k_m, {}), 15u);
  EXPECT_EQ(file_type(WeightMix::as_stored, released_model(DType::bf16)), 32u);
  EXPECT_EQ(file_type(WeightMix::as_stored, released_model(DType::f32)), 0u);
}

}  // namespace
}  // namespace dgemma
