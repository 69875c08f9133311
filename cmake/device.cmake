# Chooses the sources of the device backend, BRIMFUL_DEVICE_SOURCES: those in CUDA where a working nvcc is
# found, those that say why not elsewhere. Included before the targets, which take their CUDA settings from here.
# BRIMFUL_CUDA says what to do without one: AUTO builds for the CPU only, ON fails, OFF does not look.

if(NOT BRIMFUL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "BRIMFUL_CUDA is '${BRIMFUL_CUDA}'; expected AUTO, ON or OFF")
endif()

# Sets `problem` to what keeps this machine from building the CUDA backend; empty when nothing does.
function(brimful_probe_nvcc problem)
  # enable_language() would end the configuration if it failed. check_language() tries it in a project
  # of its own first, which also finds out an nvcc that is there but does not work with the compiler.
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(${problem} "no working nvcc was found (on PATH, or named by CUDACXX)" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE banner)
  if(NOT banner MATCHES "release ([0-9]+\\.[0-9]+)" OR CMAKE_MATCH_1 VERSION_LESS 12.8)
    set(${problem} "${CMAKE_CUDA_COMPILER} is release ${CMAKE_MATCH_1}; 12.8 or newer is needed" PARENT_SCOPE)
    return()
  endif()
  set(${problem} "" PARENT_SCOPE)
endfunction()

# What needs no device is built everywhere.
set(BRIMFUL_DEVICE_SOURCES csrc/device/make_kernels.cpp csrc/device/fake_device.cpp
  csrc/device/fake_memory.cpp csrc/device/race_detector.cpp csrc/device/starvation.cpp)

set(brimful_problem "BRIMFUL_CUDA is OFF")
if(NOT BRIMFUL_CUDA STREQUAL "OFF")
  brimful_probe_nvcc(brimful_problem)
endif()

if(NOT brimful_problem)
  # Machine code for Ampere and Hopper; for Blackwell also PTX, which later devices compile themselves.
  # Both must be set before the language is enabled.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
  enable_language(CUDA)
  list(APPEND BRIMFUL_DEVICE_SOURCES
    csrc/device/device_cuda.cu csrc/device/kernels.cu)
  message(STATUS "brimful: CUDA backend for ${CMAKE_CUDA_ARCHITECTURES}, nvcc ${CMAKE_CUDA_COMPILER_VERSION}")
elseif(BRIMFUL_CUDA STREQUAL "ON")
  message(FATAL_ERROR "BRIMFUL_CUDA is ON, but ${brimful_problem}. Install the CUDA toolkit, or build "
    "for the CPU with BRIMFUL_CUDA=OFF.")
else()
  list(APPEND BRIMFUL_DEVICE_SOURCES
    csrc/device/device_none.cpp csrc/device/kernels_none.cpp)
  message(STATUS "brimful: no CUDA backend: ${brimful_problem}")
endif()
