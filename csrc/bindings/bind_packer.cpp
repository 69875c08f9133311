// Placeholder until this part is built.
#include "bindings/bindings.hpp"

namespace brimful {

void bind_packer(pybind11::module_&) {}

}  // namespace brimful
