#include "core/random.hpp"
#include "core/types.hpp"
#include "core/error.hpp"
#include "core/cpu.hpp"
