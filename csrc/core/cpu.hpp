// What is asked of the processor itself.
//
// BRIMFUL_HOT builds a function for AVX-512, AVX2 and the baseline and picks one when the module is
// loaded: one wheel serves every machine. For the few hot loops only.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define BRIMFUL_HOT __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BRIMFUL_HOT
#endif
