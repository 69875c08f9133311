# The device backend: device_cuda.cu where nvcc is found, device_none.cpp elsewhere.
target_sources(brimful_core PRIVATE csrc/device/device_none.cpp)
