// Checkpoint directories as GGUF: names, shapes and bytes against a table written from the format's description, whole
// generations against the directory they came from. tools/reference/check_convert.py lets the gguf package read the
// same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "base/error.h"
#include "engine/convert_gguf.h"
#include "engine/quantize_gguf.h"
#include "engine/session.h"
#include "format/safetensors.h"
#include "kernels/dequantize.h"
#include "text/tokenizer_to_gguf.h"

namespace dgemma {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = DGEMMA_SOURCE_DIR;
const fs::path kTiny = kSource / "tests/golden/tiny";
const fs::path kSudoku = kSource / "models/sudoku-6x6";

class Convert : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("dgemma_convert_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path converted(const fs::path& directory, WeightMix mix = WeightMix::as_stored) {
    GgufOutput output;
    output.path = folder_ / fmt::format("{}-{}.gguf", directory.filename().string(), static_cast<int>(mix));
    output.mix = mix;
    output.threads = 2;
    output.overwrite = true;
    ConvertSettings settings;
    settings.without_tokenizer = !fs::exists(directory / "tokenizer.json");
    convert_to_gguf(directory, settings, output);
    return output.path;
  }

  // A copy of a checkpoint whose files a test may change.
  fs::path copy_of(const fs::path& directory) {
    const fs::path copy = folder_ / "copy";
    fs::copy(directory, copy);
    return copy;
  }

  fs::path folder_;
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void replace_in(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = text_of(path);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary) << text;
}

// Hugging Face names, behind model.decoder. or model.decoder.layers.N., and GGUF's (spec gguf.md 2.2).
const std::map<std::string, std::string> kGlobal{
    {"embed_tokens.weight", "token_embd.weight"},
    {"norm.weight", "output_norm.weight"},
    {"self_conditioning.pre_norm.weight", "self_cond_pre_norm.weight"},
    {"self_conditioning.gate_proj.weight", "self_cond_gate.weight"},
    {"self_conditioning.up_proj.weight", "self_cond_up.weight"},
    {"self_conditioning.down_proj.weight", "self_cond_down.weight"},
};
const std::map<std::string, std::string> kLayer{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"},
    {"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"},
    {"post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
    {"router.proj.weight", "ffn_gate_inp.weight"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"},
    {"layer_scalar", "layer_output_scale.weight"},
};

std::string gguf_name(const std::string& hugging_face) {
  constexpr std::string_view kDecoder = "model.decoder.", kEncoder = "model.encoder.language_model.layers.";
  const auto in_layer = [](std::string_view rest, const std::map<std::string, std::string>& names) {
    const std::size_t dot = rest.find('.');
    return fmt::format("blk.{}.{}", rest.substr(0, dot), names.at(std::string(rest.substr(dot + 1))));
  };
  const std::string_view name = hugging_face;
  if (name.starts_with(kEncoder)) {
    return in_layer(name.substr(kEncoder.size()), {{"layer_scalar", "enc_layer_output_scale.weight"}});
  }
  const std::string_view rest = name.substr(kDecoder.size());
  return rest.starts_with("layers.") ? in_layer(rest.substr(7), kLayer) : kGlobal.at(std::string(rest));
}

std::vector<float> decoded(const TensorInfo& tensor) {
  const std::int64_t count = static_cast<std::int64_t>(tensor.bytes.size()) / block_shape(tensor.dtype).bytes *
                             block_shape(tensor.dtype).elements;
  std::vector<float> out(static_cast<std::size_t>(count));
  dequantize_for(static_cast<std::uint32_t>(tensor.dtype))(tensor.bytes.data(), out.data(), count);
  return out;
}

TEST_F(Convert, EveryTensorUnderItsNameWithItsBytes) {
  for (const fs::path& directory : {kTiny, kSudoku}) {
    const SafetensorsFile source = SafetensorsFile::open_directory(directory);
    const GgufFile file = GgufFile::open(converted(directory));
    EXPECT_EQ(file.tensors().size(), source.tensors().size() + 1);  // and rope_freqs
    for (const TensorInfo& expected : source.tensors()) {
      const TensorInfo* found = file.find(gguf_name(expected.name));
      ASSERT_NE(found, nullptr) << expected.name;
      EXPECT_EQ(found->shape, expected.shape) << found->name;
      const bool floats = expected.shape.size() == 1 || found->name.ends_with("ffn_gate_inp.weight");
      EXPECT_EQ(found->dtype, floats ? DType::f32 : expected.dtype) << found->name;
      if (found->dtype == expected.dtype) {
        ASSERT_EQ(found->bytes.size(), expected.bytes.size());
        EXPECT_EQ(std::memcmp(found->bytes.data(), expected.bytes.data(), expected.bytes.size()), 0) << found->name;
      } else {
        EXPECT_EQ(decoded(*found), decoded(expected)) << found->name;
      }
    }
  }
}

TEST_F(Convert, MetadataOfTheTinyCheckpoint) {
  const GgufFile file = GgufFile::open(converted(kTiny));
  EXPECT_EQ(file.string("general.architecture"), "diffusion-gemma");
  EXPECT_EQ(file.string("general.type"), "model");
  EXPECT_EQ(file.string("general.name"), "tiny");
  EXPECT_EQ(file.integer("general.file_type"), 0);
  const std::map<std::string, std::int64_t> integers{{"block_count", 6},
                                                     {"context_length", 4096},
                                                     {"embedding_length", 64},
                                                     {"feed_forward_length", 80},
                                                     {"attention.head_count", 4},
                                                     {"expert_count", 8},
                                                     {"expert_used_count", 2},
                                                     {"expert_feed_forward_length", 16},
                                                     {"attention.key_length", 32},
                                                     {"attention.value_length", 32},
                                                     {"attention.key_length_swa", 16},
                                                     {"attention.value_length_swa", 16},
                                                     {"rope.dimension_count", 32},
                                                     {"rope.dimension_count_swa", 16},
                                                     {"attention.sliding_window", 12},
                                                     {"attention.shared_kv_layers", 0},
                                                     {"embedding_length_per_layer_input", 0}};
  for (const auto& [key, value] : integers) {
    const std::string whole = "diffusion-gemma." + key;
    EXPECT_EQ(file.integer(whole), value) << key;
    EXPECT_EQ(file.value(whole)->type, GgufType::u32) << key;
  }
  EXPECT_EQ(file.number("diffusion-gemma.rope.freq_base"), 1e6);
  EXPECT_EQ(file.number("diffusion-gemma.rope.freq_base_swa"), 1e4);
  EXPECT_EQ(file.number("diffusion-gemma.attention.layer_norm_rms_epsilon"), 1e-6f);
  EXPECT_EQ(file.number("diffusion-gemma.final_logit_softcapping"), 30);
  EXPECT_EQ(file.boolean("diffusion-gemma.attention.causal"), false);
  EXPECT_EQ(file.integers("diffusion-gemma.attention.head_count_kv"), (std::vector<std::int64_t>{2, 2, 1, 2, 2, 1}));
  EXPECT_EQ(file.booleans("diffusion-gemma.attention.sliding_window_pattern"),
            (std::vector<bool>{true, true, false, true, true, false}));
  EXPECT_EQ(file.integer("diffusion.canvas_length"), 16);
  EXPECT_EQ(file.integer("diffusion.eb_max_steps"), 8);
  EXPECT_EQ(file.number("diffusion.eb_t_min"), 0.4f);
  EXPECT_EQ(file.number("diffusion.eb_t_max"), 0.8f);
  EXPECT_EQ(file.number("diffusion.eb_entropy_bound"), 0.1f);
  EXPECT_EQ(file.integer("diffusion.eb_stability_threshold"), 1);
  EXPECT_EQ(file.number("diffusion.eb_confidence_threshold"), 0.005f);
  // A quarter of the 16 pairs of a full layer's head turns.
  EXPECT_EQ(decoded(*file.find("rope_freqs.weight")),
            (std::vector<float>{1, 1, 1, 1, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f,
                                1e30f}));
  EXPECT_EQ(file.value("tokenizer.ggml.model"), nullptr);
}

// "128x2.6B" is the label of the published file.
TEST(SizeLabel, OfThePublishedFile) {
  std::vector<TensorInfo> tensors{{"token_embd.weight", DType::bf16, {262144, 2816}, {}}};
  for (int layer = 0; layer < 30; ++layer) {
    const bool full = layer % 6 == 5;
    const std::int64_t q = full ? 8192 : 4096, kv = full ? 1024 : 4096;  // k, and v on local layers
    tensors.push_back({"attention", DType::bf16, {2 * q + kv, 2816}, {}});
    tensors.push_back({"dense", DType::bf16, {3 * 2112, 2816}, {}});
    tensors.push_back({"blk.0.ffn_gate_up_exps.weight", DType::bf16, {128, 1408, 2816}, {}});
    tensors.push_back({"blk.0.ffn_down_exps.weight", DType::bf16, {128, 2816, 704}, {}});
  }
  EXPECT_EQ(size_label(tensors), "128x2.6B");
  EXPECT_EQ(size_label(std::span(tensors).first(1)), "738M");
}

// Logits of a canvas behind a prompt, [canvas, vocabulary].
std::vector<float> canvas_logits(const Engine& engine) {
  Context c(2);
  const ModelConfig& config = engine.config();
  KvCache cache(config, 64);
  Activations a;
  std::vector<std::int32_t> prompt, canvas;
  for (std::int32_t i = 0; i < 20; ++i) prompt.push_back(static_cast<std::int32_t>((i * 7 + 2) % config.vocabulary));
  for (std::int32_t i = 0; i < config.canvas_length; ++i)
    canvas.push_back(static_cast<std::int32_t>((i * 5 + 1) % config.vocabulary));
  const Pass encode({{Role::encoder, 20, &cache}});
  embed_pass(c, config, engine.weights(), encode, prompt, {}, a);
  stack_forward(c, config, engine.weights(), encode, a);
  const Pass denoise({{Role::decoder, config.canvas_length, &cache}});
  embed_pass(c, config, engine.weights(), denoise, canvas, {}, a);
  stack_forward(c, config, engine.weights(), denoise, a);
  Matrix normed, logits;
  const View n = normed.reshape(config.canvas_length, config.hidden);
  const View z = logits.reshape(config.canvas_length, config.vocabulary);
  final_norm(c, config, engine.weights(), n, a.slots().x);
  head_logits(c, z, n, engine.weights().head, config.final_logit_softcapping);
  return {z.data, z.data + z.rows * z.cols};
}

double relative_error(std::span<const float> found, std::span<const float> expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    error += (double{found[i]} - expected[i]) * (double{found[i]} - expected[i]);
    size += double{expected[i]} * expected[i];
  }
  return std::sqrt(error / size);
}

std::vector<std::int32_t> generated(const Engine& engine, std::vector<std::int32_t> prompt, std::int64_t tokens) {
  Context c(2);
  SessionSettings settings;
  settings.denoise = engine.defaults().denoise;
  settings.max_tokens = tokens;
  settings.seed = 3;
  settings.stop_ids = engine.defaults().stop_ids;
  Session session(engine, settings, std::move(prompt));
  while (session.advance(c) != Progress::finished) continue;
  return {session.tokens().begin(), session.tokens().end()};
}

TEST_F(Convert, SameLogitsAndTextAsTheDirectory) {
  for (const fs::path& directory : {kTiny, kSudoku}) {
    const Engine before = Engine::open(directory), after = Engine::open(converted(directory));
    EXPECT_EQ(after.defaults().denoise.max_denoising_steps, before.defaults().denoise.max_denoising_steps);
    EXPECT_EQ(canvas_logits(after), canvas_logits(before)) << directory;
    const std::vector<std::int32_t> prompt{2, 7, 6, 6, 9, 5, 6, 8};
    EXPECT_EQ(generated(after, prompt, 40), generated(before, prompt, 40)) << directory;
  }
}

// Exact solutions among the first puzzles of held_out.csv.
int solved(const Engine& engine, int puzzles) {
  std::ifstream in(kSudoku / "held_out.csv");
  std::string line;
  std::getline(in, line);
  const auto rows = [](std::string_view cells) {
    std::string out;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += cells[i] == '0' ? '.' : cells[i];
      if (i % 4 == 3) out += '\n';
    }
    return out;
  };
  int right = 0;
  for (int i = 0; i < puzzles && std::getline(in, line); ++i) {
    std::vector<std::int32_t> prompt = engine.tokenizer().encode(rows(line.substr(0, 16)), SpecialTokens::plain);
    prompt.insert(prompt.begin(), engine.tokenizer().bos());
    const std::vector<std::int32_t> answer = generated(engine, prompt, 20);
    std::string solution = rows(line.substr(17, 16));
    solution.pop_back();  // an answer ends with its last digit
    right += engine.tokenizer().decode(answer, true) == solution ? 1 : 0;
  }
  return right;
}

// The error of quantised weights, on the logits of one pass and on what the model is for.
TEST_F(Convert, QuantisedModelsStayCloseAndSolvePuzzles) {
  const Engine original = Engine::open(kSudoku);
  const std::vector<float> expected = canvas_logits(original);
  const int puzzles = 16, right = solved(original, puzzles);
  struct Case {
    WeightMix mix;
    double bound;  // root mean square of the logits' error over that of the logits
    int lost;      // puzzles
  };
  for (const Case& one : {Case{WeightMix::f16, 1e-4, 0}, Case{WeightMix::q8_0, 0.02, 1},
                          Case{WeightMix::q5_k_m, 0.15, 3}, Case{WeightMix::q4_0, 0.4, 5}}) {
    const Engine engine = Engine::open(converted(kSudoku, one.mix));
    const double error = relative_error(canvas_logits(engine), expected);
    const int found = solved(engine, puzzles);
    EXPECT_LE(error, one.bound) << static_cast<int>(one.mix);
    EXPECT_GE(found, right - one.lost) << static_cast<int>(one.mix);
    RecordProperty("error_of_mix_" + std::to_string(static_cast<int>(one.mix)), std::to_string(error));
  }
}

// Converting with a type is converting and quantising.
TEST_F(Convert, TypeInOneStepOrTwo) {
  const fs::path one = converted(kSudoku, WeightMix::q4_k_m), stored = converted(kSudoku);
  GgufOutput output;
  output.path = folder_ / "two.gguf";
  output.mix = WeightMix::q4_k_m;
  quantize_gguf(stored, output);
  EXPECT_EQ(text_of(one), text_of(output.path));
}

TEST_F(Convert, TokenizerAndTemplateTravel) {
  const GgufFile file = GgufFile::open(converted(kSudoku));
  EXPECT_EQ(file.string("tokenizer.ggml.model"), "gemma4");
  EXPECT_THAT(*file.strings("tokenizer.ggml.tokens"),
              ::testing::ElementsAre("<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "\n", ".", "1", "2", "3", "4", "5",
                                     "6", "7", "8", "9"));
  EXPECT_THAT(*file.integers("tokenizer.ggml.token_type"),
              ::testing::ElementsAre(3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_EQ(file.string("tokenizer.chat_template"), text_of(kSudoku / "chat_template.jinja"));
  EXPECT_EQ(file.integer("tokenizer.ggml.bos_token_id"), 2);
  EXPECT_EQ(file.integer("tokenizer.ggml.mask_token_id"), 4);
  EXPECT_EQ(file.boolean("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(file.boolean("tokenizer.ggml.add_space_prefix"), false);
}

// One stop id beside <eos> is the end of a turn; for a second one there is no key.
TEST_F(Convert, OtherStopIds) {
  const fs::path copy = copy_of(kSudoku);
  replace_in(copy / "generation_config.json", "[\n    1\n  ]", "[1, 6, 9]");
  GgufOutput output;
  output.path = folder_ / "out.gguf";
  const Converted done = convert_to_gguf(copy, {}, output);
  EXPECT_EQ(GgufFile::open(output.path).integer("tokenizer.ggml.eot_token_id"), 6);
  EXPECT_THAT(done.notes, ::testing::Contains(::testing::HasSubstr("stop id 9")));
  EXPECT_THAT(Engine::open(output.path).defaults().stop_ids, ::testing::Contains(6));
}

TEST_F(Convert, RefusesWhatWouldBeLostOrDoesNotFit) {
  GgufOutput output;
  output.path = folder_ / "out.gguf";
  const auto message = [&](const fs::path& directory, ConvertSettings settings = {}) -> std::string {
    try {
      convert_to_gguf(directory, settings, output);
    } catch (const Error& error) {
      EXPECT_FALSE(fs::exists(output.path));
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(kTiny), ::testing::HasSubstr("--no-tokenizer"));
  EXPECT_THAT(message(kTiny / "model.safetensors"), ::testing::HasSubstr("dgemma quantize"));
  const fs::path copy = copy_of(kSudoku);
  replace_in(copy / "config.json", "\"rope_type\": \"proportional\"", "\"factor\": 8.0,\n \"rope_type\": \"linear\"");
  EXPECT_THAT(message(copy), ::testing::HasSubstr("layer 3"));
  fs::copy_file(kSudoku / "config.json", copy / "config.json", fs::copy_options::overwrite_existing);
  replace_in(copy / "config.json", "diffusion_gemma", "gemma3_text");
  EXPECT_NE(message(copy), "");
  fs::copy_file(kSudoku / "config.json", copy / "config.json", fs::copy_options::overwrite_existing);
  replace_in(copy / "model.safetensors", "model.encoder.language_model.layers.0.layer_scalar",
             "model.somehow.language_model.layers.0.layer_scalar");
  EXPECT_THAT(message(copy), ::testing::HasSubstr("would be lost"));
}

// The real vocabulary against the file that llama.cpp's converter made of the 26B-A4B model.
TEST_F(Convert, GemmaFourVocabularyIsThePublishedOne) {
  const fs::path json = kSource / ".cache/gemma4-tokenizer.json", gguf = kSource / ".cache/ggml-vocab-gemma-4.gguf";
  for (const fs::path& needed : {json, gguf}) {
    if (!fs::exists(needed))
      GTEST_SKIP() << "run scripts/fetch-vocabulary for " << fs::relative(needed, kSource).string();
  }
  GgufWriter writer;
  const MappedFile bytes(json);
  EXPECT_THAT(tokenizer_to_gguf(bytes.bytes(), 262144, std::vector<std::int32_t>{1, 106, 50}, writer),
              ::testing::IsEmpty());
  writer.write(folder_ / "vocabulary.gguf");
  const GgufFile found = GgufFile::open(folder_ / "vocabulary.gguf"), expected = GgufFile::open(gguf);
  int compared = 0;
  for (const GgufValue& value : expected.values()) {
    if (!value.key.starts_with("tokenizer.ggml.")) continue;
    const GgufValue* other = found.value(value.key);
    ASSERT_NE(other, nullptr) << value.key;
    EXPECT_EQ(other->type, value.type) << value.key;
    EXPECT_EQ(other->count, value.count) << value.key;
    EXPECT_TRUE(std::equal(other->bytes.begin(), other->bytes.end(), value.bytes.begin(), value.bytes.end()))
        << value.key;
    ++compared;
  }
  EXPECT_EQ(compared, 12);
}

}  // namespace
}  // namespace dgemma
