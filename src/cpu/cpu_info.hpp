#pragma once

#include "gatefold/gatefold.h"

namespace gatefold::cpu {

gatefold_device_info device_info();

// Can this CPU multiply bf16 natively (AVX-512 BF16 or AMX)? Elsewhere bf16 is widened to fp32 a panel at a time.
bool has_native_bf16();

}  // namespace gatefold::cpu
