#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gatefold::checkpoint {

// Parses JSON that nobody vouches for: an object, no key twice in one object, nothing nested deeper than any file of
// ours needs. `where` names the text in errors. Throws InputError.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

nlohmann::json read_json_object(const std::filesystem::path& path);

}  // namespace gatefold::checkpoint
