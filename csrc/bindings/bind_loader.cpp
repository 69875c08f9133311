// Placeholder until this part is built.
#include "bindings/bindings.hpp"

namespace brimful {

void bind_loader(pybind11::module_&) {}

}  // namespace brimful
