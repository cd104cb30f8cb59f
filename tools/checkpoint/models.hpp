#pragma once

#include <string_view>

namespace gatefold::checkpoint {

// The text of models.json, so that the tool needs no data file.
extern const std::string_view models_json;

}  // namespace gatefold::checkpoint
