// Each bind_*.cpp adds one part of the module. Bindings translate and do nothing else.
#pragma once

#include <pybind11/pybind11.h>

namespace brimful {

void bind_errors(pybind11::module_& m);
void bind_corpus(pybind11::module_& m);
void bind_transfer(pybind11::module_& m);
void bind_packer(pybind11::module_& m);
void bind_unpad(pybind11::module_& m);
void bind_counting(pybind11::module_& m);
void bind_flatten(pybind11::module_& m);
void bind_plan(pybind11::module_& m);
void bind_steps(pybind11::module_& m);
void bind_optimal(pybind11::module_& m);
void bind_loader(pybind11::module_& m);
void bind_megatron(pybind11::module_& m);
void bind_mix(pybind11::module_& m);
void bind_device(pybind11::module_& m);
void bind_kernels(pybind11::module_& m);
void bind_masks(pybind11::module_& m);
void bind_fake_device(pybind11::module_& m);

}  // namespace brimful
