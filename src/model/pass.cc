#include "model/pass.h"

#include <algorithm>

#include "base/error.h"

namespace dgemma {

Pass::Pass(std::vector<Segment> segments) : segments_(std::move(segments)) {
  for (Segment& segment : segments_) {
    DGEMMA_CHECK(segment.cache != nullptr && segment.rows > 0 && segment.outputs >= 0);
    segment.outputs = std::min(segment.outputs, segment.rows);
    if (segment.role == Role::encoder) segment.cache->reserve(segment.rows);
    for (std::int64_t i = 0; i < segment.rows; ++i) {
      const auto position = static_cast<std::int32_t>(segment.cache->length() + i);
      if (i >= segment.rows - segment.outputs) {
        output_rows_.push_back(rows());
        output_positions_.push_back(position);
      }
      positions_.push_back(position);
    }
  }
}

}  // namespace dgemma
