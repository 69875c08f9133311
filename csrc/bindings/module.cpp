// The extension module brimful._core.
#include "bindings/bindings.hpp"

PYBIND11_MODULE(_core, m, pybind11::mod_gil_not_used()) {
  m.doc() = "The native core of brimful. Private: use the names of the package brimful.";
  brimful::bind_errors(m);
  brimful::bind_mix(m);
  brimful::bind_corpus(m);
  brimful::bind_transfer(m);
  brimful::bind_packer(m);
  brimful::bind_unpad(m);
  brimful::bind_counting(m);
  brimful::bind_flatten(m);
  brimful::bind_megatron(m);
  brimful::bind_plan(m);
  brimful::bind_steps(m);
  brimful::bind_optimal(m);
  brimful::bind_device(m);
  brimful::bind_fake_device(m);
  brimful::bind_loader(m);
  brimful::bind_kernels(m);
  brimful::bind_masks(m);
}
