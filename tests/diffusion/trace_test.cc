#include "diffusion/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace dgemma {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string hostile(std::int32_t id) {
  switch (id) {
    case 0:
      return "<script>alert(1)</script>";
    case 1:
      return "\"'&\\\n\x01\x7f";
    case 2:
      return "\xE2\x82";  // a character cut short
    case 3:
      return "\xE2\x82\xAC \xED\xA0\x80 \xC0\xAF";  // euro sign, a surrogate, an overlong slash
    default:
      return std::string("a\0b", 3);
  }
}

Trace two_steps() {
  DenoiseSettings settings;
  settings.max_denoising_steps = 2;
  Canvas canvas(settings, {9, 9, 9, 9, 9});
  const auto step = entropy_bound_step(0.1f);
  const StepNoise noise{[](std::int64_t) { return 7; }, [](std::int64_t) { return 0.5; }};
  Trace trace;
  while (!canvas.done()) {
    canvas.advance(
        std::vector<RowPrediction>{
            {0, 10, 0.01f, 0.75f}, {1, 11, 3, 0.25f}, {2, 12, 0.02f, 1}, {3, 13, 4, 0.125f}, {4, 14, INFINITY, NAN}},
        *step, noise);
    trace.record(3, canvas);
  }
  return trace;
}

// Read back by another program's JSON parser, which demands valid UTF-8.
TEST(Trace, JsonHoldsEveryStep) {
  const nlohmann::json root = nlohmann::json::parse(two_steps().json(hostile));
  ASSERT_EQ(root["steps"].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const nlohmann::json& step = root["steps"][static_cast<std::size_t>(i)];
    EXPECT_EQ(step["canvas"], 3);
    EXPECT_EQ(step["step"], i + 1);
    EXPECT_EQ(step["done"], i == 1);
    EXPECT_EQ(step["best"], nlohmann::json({0, 1, 2, 3, 4}));
    EXPECT_EQ(step["accepted"], nlohmann::json({1, 1, 1, 0, 0}));
    EXPECT_EQ(step["ids"], nlohmann::json({10, 11, 12, 7, 7}));
    EXPECT_EQ(step["confidence"][1].get<float>(), 0.25f);
    EXPECT_EQ(step["entropy"][0].get<float>(), 0.01f);
    EXPECT_TRUE(step["entropy"][4].is_null() && step["confidence"][4].is_null());
    EXPECT_EQ(step["text"][0], hostile(0));
    EXPECT_EQ(step["text"][1], hostile(1));
    EXPECT_EQ(step["text"][2], "\uFFFD\uFFFD");
    EXPECT_EQ(step["text"][3], "\u20AC \uFFFD\uFFFD\uFFFD \uFFFD\uFFFD");
    EXPECT_EQ(step["text"][4], hostile(4));
  }
}

TEST(Trace, HtmlEscapesEverythingAndAsksForNothing) {
  const std::string page = two_steps().html("</title><b>\"x\"", hostile);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;/title&gt;&lt;b&gt;&quot;x&quot;</title>"));
  EXPECT_THAT(page, HasSubstr(">&quot;&#39;&amp;\\&#8629;&#9217;&#9249;</span>"));
  EXPECT_EQ(page.find('\0'), std::string::npos);
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(page, HasSubstr("<span class=\"a\" style=\"--c:0.75\" title=\"position 0, id 0, "));
  EXPECT_THAT(page, HasSubstr("<span style=\"--c:0.00\" title=\"position 4, id 4, "));
}

TEST(Trace, EmptyTraceIsValid) {
  EXPECT_EQ(nlohmann::json::parse(Trace().json(hostile))["steps"].size(), 0u);
  EXPECT_THAT(Trace().html("none", hostile), HasSubstr("</body></html>"));
}

}  // namespace
}  // namespace dgemma
