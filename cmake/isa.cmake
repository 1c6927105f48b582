# The kernel tables that this architecture has, whose files are src/kernels/isa_NAME.cc; kernels/choose.cc knows what each asks of
# the CPU.
set(dgemma_tables scalar)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND dgemma_tables avx2 avx2_vnni avx512 avx512_vnni avx512_bf16 amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  list(APPEND dgemma_tables neon_dotprod neon_i8mm)
endif()
foreach(table ${dgemma_tables})
  target_sources(dgemma_kernels PRIVATE src/kernels/isa_${table}.cc)
endforeach()

# (g++ 12 warns inside its own avx512fintrin.h, hence the two exceptions.)
# Each instruction set's table is compiled with its own flags; -ffp-contract=off keeps an element's value independent of the
# tile that the compiler chose to contract.
set_source_files_properties(src/kernels/isa_scalar.cc PROPERTIES COMPILE_OPTIONS "-ffp-contract=off")
set_source_files_properties(src/kernels/isa_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-ffp-contract=off")
set_source_files_properties(src/kernels/isa_avx512.cc PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-ffp-contract=off;-Wno-uninitialized;-Wno-maybe-uninitialized")
set_source_files_properties(src/kernels/isa_avx2_vnni.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mavxvnni;-ffp-contract=off")
set_source_files_properties(src/kernels/isa_avx512_vnni.cc PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512vnni;-ffp-contract=off;-Wno-uninitialized;-Wno-maybe-uninitialized")
set_source_files_properties(src/kernels/isa_avx512_bf16.cc PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512vnni;-mavx512bf16;-ffp-contract=off;-Wno-uninitialized;-Wno-maybe-uninitialized")
set_source_files_properties(src/kernels/isa_amx.cc PROPERTIES COMPILE_OPTIONS "-mavx512f;-mavx512bw;-mavx512vnni;-mamx-tile;-mamx-bf16;-ffp-contract=off;-Wno-uninitialized;-Wno-maybe-uninitialized")
set_source_files_properties(src/kernels/isa_neon_dotprod.cc PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod;-ffp-contract=off")
set_source_files_properties(src/kernels/isa_neon_i8mm.cc PROPERTIES COMPILE_OPTIONS "-march=armv8.2-a+dotprod+i8mm;-ffp-contract=off")
set_source_files_properties(bench/limits.cc PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
