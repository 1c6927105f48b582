#include "engine/weight_types.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string>

#include "kernels/dequantize.h"

namespace dgemma {
namespace {

struct Row {
  WeightMix mix;
  std::string_view name;
  DType type;               // of most matrices
  std::uint32_t file_type;  // llama.cpp's number
};

constexpr Row kMixes[] = {
    {WeightMix::f32, "F32", DType::f32, 0},         {WeightMix::f16, "F16", DType::f16, 1},
    {WeightMix::bf16, "BF16", DType::bf16, 32},     {WeightMix::q8_0, "Q8_0", DType::q8_0, 7},
    {WeightMix::q4_0, "Q4_0", DType::q4_0, 2},      {WeightMix::q4_k, "Q4_K", DType::q4_k, 14},
    {WeightMix::q5_k, "Q5_K", DType::q5_k, 16},     {WeightMix::q6_k, "Q6_K", DType::q6_k, 18},
    {WeightMix::q4_k_m, "Q4_K_M", DType::q4_k, 15}, {WeightMix::q5_k_m, "Q5_K_M", DType::q5_k, 17},
};

constexpr int kMaxLayers = 1 << 16;

// "blk.12.attn_v.weight" is {12, "attn_v.weight"}; a tensor outside the layers has layer -1.
struct LayerName {
  int layer = -1;
  std::string_view rest;
};

LayerName layer_name(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return {-1, name};
  LayerName out;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(begin, end, out.layer);
  if (error != std::errc() || stop == end || *stop != '.' || out.layer < 0 || out.layer >= kMaxLayers)
    return {-1, name};
  out.rest = name.substr(static_cast<std::size_t>(stop + 1 - name.data()));
  return out;
}

// llama.cpp spends more bits on the first and the last eighth of the tensors of a kind, and on every third between.
bool more_bits(int index, int count) {
  return index < count / 8 || index >= 7 * count / 8 || (index - count / 8) % 3 == 2;
}

// What the published mixes depend on beside a tensor's own name.
struct Layers {
  int count = 0;
  std::map<int, int> value_rank;  // layer -> how many layers before it have an attn_v
};

Layers layers_of(std::span<const TensorInfo> tensors) {
  Layers out;
  std::set<int> with_values;
  for (const TensorInfo& tensor : tensors) {
    const LayerName name = layer_name(tensor.name);
    out.count = std::max(out.count, name.layer + 1);
    if (name.rest == "attn_v.weight") with_values.insert(name.layer);
  }
  for (const int layer : with_values) out.value_rank.emplace(layer, static_cast<int>(out.value_rank.size()));
  return out;
}

DType mixed_type(DType most, const std::string& tensor, const Layers& layers) {
  if (tensor == "token_embd.weight" || tensor == "output.weight") return DType::q6_k;
  const auto [layer, rest] = layer_name(tensor);
  if (layer < 0) return most;
  if (rest == "attn_v.weight") {
    const int values = static_cast<int>(layers.value_rank.size());
    return more_bits(layers.value_rank.at(layer), values) ? DType::q6_k : most;
  }
  if (rest == "ffn_down.weight" || rest == "ffn_down_exps.weight") {
    return more_bits(layer, layers.count) ? DType::q6_k : most;
  }
  return most;
}

DType fitting(DType type, std::int64_t row, DType source) {
  const auto divides = [row](DType candidate) { return row % block_shape(candidate).elements == 0; };
  if (divides(type)) return type;
  if (type == DType::q4_k) type = DType::q5_0;
  if (type == DType::q5_k) type = DType::q5_1;
  if (type == DType::q6_k) type = DType::q8_0;
  if (divides(type)) return type;
  return source == DType::bf16 ? DType::bf16 : DType::f16;
}

}  // namespace

std::optional<WeightMix> weight_mix_from_name(std::string_view name) {
  std::string upper(name);
  for (char& letter : upper) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (const Row& row : kMixes) {
    if (row.name == upper) return row.mix;
  }
  return std::nullopt;
}

std::vector<std::string> weight_mix_names() {
  std::vector<std::string> out;
  for (const Row& row : kMixes) out.emplace_back(row.name);
  return out;
}

std::uint32_t file_type(WeightMix mix, std::span<const TensorInfo> tensors) {
  for (const Row& row : kMixes) {
    if (row.mix == mix) return row.file_type;
  }
  std::map<DType, std::int64_t> elements;
  for (const TensorInfo& tensor : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t extent : tensor.shape) count *= extent;
    elements[tensor.dtype] += count;
  }
  DType most = DType::f32;
  for (const auto& [type, count] : elements) {
    if (count > elements[most]) most = type;
  }
  for (const Row& row : kMixes) {
    if (row.type == most) return row.file_type;
  }
  return 0;
}

std::vector<DType> weight_types(WeightMix mix, std::span<const TensorInfo> tensors) {
  const Layers layers = layers_of(tensors);
  const Row* row = std::find_if(std::begin(kMixes), std::end(kMixes), [mix](const Row& r) { return r.mix == mix; });
  std::vector<DType> out;
  for (const TensorInfo& tensor : tensors) {
    const bool weights = dequantize_for(static_cast<std::uint32_t>(tensor.dtype)) != nullptr;
    const bool router = layer_name(tensor.name).rest == "ffn_gate_inp.weight";
    if (!weights) {
      out.push_back(tensor.dtype);
    } else if (tensor.shape.size() < 2 || router) {
      out.push_back(DType::f32);
    } else if (mix == WeightMix::as_stored) {
      out.push_back(tensor.dtype);
    } else {
      const bool mixed = mix == WeightMix::q4_k_m || mix == WeightMix::q5_k_m;
      const DType wanted = mixed ? mixed_type(row->type, tensor.name, layers) : row->type;
      out.push_back(fitting(wanted, tensor.shape.back(), tensor.dtype));
    }
  }
  return out;
}

}  // namespace dgemma
