#include "text/stream_decoder.h"

#include "base/utf8.h"

namespace dgemma {
namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
}

std::string StreamDecoder::push(std::span<const std::int32_t> ids) {
  std::string out;
  for (const std::int32_t id : ids) {
    if (skip_special_ && tokenizer_.is_control(id)) continue;
    if (!tokenizer_.is_byte(id)) {
      if (const std::string text = tokenizer_.text_of(id); !text.empty()) out += finish() + text;
      continue;
    }
    waiting_ += tokenizer_.text_of(id);
    while (!waiting_.empty()) {
      const int length = utf8_character(waiting_);
      if (length < 0) break;
      if (length == 0) {
        out += kReplacement;
        waiting_.erase(0, 1);
      } else {
        out.append(waiting_, 0, static_cast<std::size_t>(length));
        waiting_.erase(0, static_cast<std::size_t>(length));
      }
    }
  }
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  for (std::size_t i = 0; i < waiting_.size(); ++i) out += kReplacement;
  waiting_.clear();
  return out;
}

}  // namespace dgemma
