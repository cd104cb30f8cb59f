#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace gatefold::checkpoint {

// Parses JSON that nobody vouches for: an object, no key twice in one object, nothing nested deeper than any file of
// ours needs. `where` names the text in errors. Throws InputError.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

// The same for an object of very many members: each is handed over as soon as it is read, and forgotten.
using JsonMember = std::function<void(const std::string& name, const nlohmann::json& value)>;
void parse_json_members(std::string_view text, const std::string& where, const JsonMember& each);

// An object from a file, as people and Python write them: NaN, Infinity and -Infinity become strings.
nlohmann::json read_json_object(const std::filesystem::path& path);

}  // namespace gatefold::checkpoint
