// The device layer: asks whether an accelerator can be used. Never needs a driver to be loaded.
#pragma once

#include <string>

namespace brimful::device {

// True when this build has a CUDA backend and the driver shows at least one device.
bool available();

// Why not, as one sentence for a person; empty when available.
std::string why_not();

}  // namespace brimful::device
