# Libraries when building for another architecture, which Debian's packages for this one are not built for: {fmt} from its headers
# alone, GoogleTest from its sources (Debian package googletest).
find_path(DGEMMA_FMT_HEADERS fmt/format.h REQUIRED)
add_library(fmt::fmt INTERFACE IMPORTED)
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
target_include_directories(fmt::fmt INTERFACE ${DGEMMA_FMT_HEADERS})
set(INSTALL_GTEST OFF)
add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
foreach(target gtest gtest_main gmock)
  target_compile_options(${target} PRIVATE -w)  # our warnings are not theirs
endforeach()
