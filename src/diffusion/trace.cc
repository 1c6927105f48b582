#include "diffusion/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.h"
#include "base/utf8.h"

namespace dgemma {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Passes ASCII bytes to `ascii`, copies longer characters and replaces each byte that is not UTF-8.
template <typename Ascii>
std::string escape(std::string_view text, Ascii ascii) {
  std::string out;
  while (!text.empty()) {
    const auto length = static_cast<std::size_t>(std::max(utf8_character(text), 0));  // 0: a broken or unfinished one
    if (length == 1) {
      ascii(out, text.front());
    } else {
      out += length == 0 ? kReplacement : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string json_string(std::string_view text) {
  return '"' +
         escape(text,
                [](std::string& out, char c) {
                  if (c == '"' || c == '\\') {
                    out += {'\\', c};
                  } else if (static_cast<unsigned char>(c) < 0x20) {
                    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
                  } else {
                    out += c;
                  }
                }) +
         '"';
}

// For element content and double-quoted attributes. Control characters are shown by their pictures (U+2400 block).
std::string html_text(std::string_view text) {
  return escape(text, [](std::string& out, char c) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
        out += "&#8629;";
        break;
      case '\x7F':
        out += "&#9249;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "&#{};", 0x2400 + static_cast<int>(c));
        } else {
          out += c;
        }
    }
  });
}

template <typename T, typename Write>
void json_array(std::string& out, std::string_view name, const std::vector<T>& values, Write write) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":[", name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += write(values[i]);
  }
  out += ']';
}

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--page:#fff;--ink:#1b1b1b;--soft:#666;--line:#ddd;--mark:255 176 32}
@media (prefers-color-scheme:dark){:root{--page:#161616;--ink:#ececec;--soft:#999;--line:#333;--mark:196 112 0}}
body{background:var(--page);color:var(--ink);font:14px/1.7 system-ui,sans-serif;margin:2em auto;max-width:80em;padding:0 1em}
h1{font-size:1.3em}h2{font-size:1em;color:var(--soft)}p{color:var(--soft)}
table{border-collapse:collapse;width:100%}
th{color:var(--soft);font-weight:normal;text-align:right;vertical-align:top;padding:.3em .8em .3em 0;width:2em}
td{border-top:1px solid var(--line);padding:.3em 0;font-family:ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
span{background:rgb(var(--mark) / var(--c));border-radius:.2em;unicode-bidi:isolate}
.a{text-decoration:underline;text-decoration-color:var(--soft)}
)";

}  // namespace

void Trace::record(std::int64_t canvas_index, const Canvas& canvas) {
  DGEMMA_CHECK(canvas.steps_done() > 0 && canvas.predictions().size() == canvas.ids().size());
  TraceStep& step = steps_.emplace_back();
  step.canvas = canvas_index;
  step.step = canvas.steps_done();
  step.done = canvas.done();
  step.ids.assign(canvas.ids().begin(), canvas.ids().end());
  step.best.assign(canvas.best().begin(), canvas.best().end());
  step.accepted.assign(canvas.accepted().begin(), canvas.accepted().end());
  for (const RowPrediction& row : canvas.predictions()) {
    step.entropy.push_back(row.entropy);
    step.confidence.push_back(row.confidence);
  }
}

std::string Trace::json(const TokenText& text) const {
  const auto number = [](float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; };
  const auto integer = [](auto value) { return fmt::format("{}", static_cast<int>(value)); };
  std::string out = "{\"steps\":[";
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TraceStep& step = steps_[i];
    fmt::format_to(std::back_inserter(out), "{}{{\"canvas\":{},\"step\":{},\"done\":{}", i > 0 ? ",\n" : "",
                   step.canvas, step.step, step.done);
    json_array(out, "ids", step.ids, integer);
    json_array(out, "best", step.best, integer);
    json_array(out, "text", step.best, [&](std::int32_t id) { return json_string(text(id)); });
    json_array(out, "accepted", step.accepted, integer);
    json_array(out, "entropy", step.entropy, number);
    json_array(out, "confidence", step.confidence, number);
    out += '}';
  }
  return out + "]}\n";
}

std::string Trace::html(std::string_view title, const TokenText& text) const {
  const std::string heading = html_text(title);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title><style>{1}</style></head><body>\n"
      "<h1>{0}</h1>\n<p>A row is a denoising step. Colour: confidence. Underlined: accepted.</p>\n",
      heading, kStyle);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TraceStep& step = steps_[i];
    if (i == 0 || steps_[i - 1].canvas != step.canvas) {
      fmt::format_to(std::back_inserter(out), "{}<h2>Canvas {}</h2>\n<table>\n", i > 0 ? "</table>\n" : "",
                     step.canvas + 1);
    }
    fmt::format_to(std::back_inserter(out), "<tr><th>{}</th><td>", step.step);
    for (std::size_t j = 0; j < step.best.size(); ++j) {
      const float confidence = step.confidence[j] >= 0 ? std::min(step.confidence[j], 1.0f) : 0.0f;
      fmt::format_to(std::back_inserter(out),
                     "<span{} style=\"--c:{:.2f}\" title=\"position {}, id {}, confidence {:.4f}, entropy {:.4f}, next "
                     "input {}\">{}</span>",
                     step.accepted[j] != 0 ? " class=\"a\"" : "", confidence, j, step.best[j], step.confidence[j],
                     step.entropy[j], step.ids[j], html_text(text(step.best[j])));
    }
    out += "</td></tr>\n";
  }
  if (!steps_.empty()) out += "</table>\n";
  return out + "</body></html>\n";
}

}  // namespace dgemma
