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
set_source_files_properties(bench/limits.cc PROPERTIES COMPILE_OPTIONS "-Wno-uninitialized;-Wno-maybe-uninitialized")
