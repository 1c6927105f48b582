// Counter-based random numbers: a value depends on (seed, stream, index) and on nothing else, so that batching, threads
// and order cannot change it. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace dgemma {

// One Philox4x32-10 block: four random words for one counter under one key.
inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// 64 random bits for (seed, stream, index).
inline std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto words = philox4x32({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  return (std::uint64_t{words[1]} << 32) | words[0];
}

// Uniform in the open interval (0, 1).
inline double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return (static_cast<double>(random_bits(seed, stream, index) >> 12) + 0.5) * 0x1p-52;
}

// Uniform over 0 .. bound-1(multiply-shift on 64 bits: the bias is below bound / 2^64).
inline std::uint32_t random_below(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, std::uint32_t bound) {
  const auto bits = random_bits(seed, stream, index);
  return static_cast<std::uint32_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

}  // namespace dgemma
