#pragma once

#include <string>

#include "cli/stage.hpp"

// gate_up by another build of this library, to hold a change against what was before it.
namespace gatefold::cli {

// Whether a library that dlopen() returned is one: it exports the functions of gatefold.h.
bool is_gatefold(void* library);

// Its gate_up. Throws checkpoint::InputError, which begins with `name`, where it can make no plan.
StagePtr gate_up_of_build(void* library, const std::string& name, const Block& block);

}  // namespace gatefold::cli
