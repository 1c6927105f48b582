#include "model/pass.h"

#include "base/error.h"

namespace dgemma {

Pass::Pass(std::vector<Segment> segments) : segments_(std::move(segments)) {
  for (const Segment& segment : segments_) {
    DGEMMA_CHECK(segment.cache != nullptr && segment.rows > 0);
    if (segment.role == Role::encoder) segment.cache->reserve(segment.rows);
    for (std::int64_t i = 0; i < segment.rows; ++i) {
      positions_.push_back(static_cast<std::int32_t>(segment.cache->length() + i));
    }
  }
}

}  // namespace dgemma
