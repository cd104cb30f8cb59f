#include "checkpoint/json_text.hpp"

#include <set>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "checkpoint/mapped_file.hpp"

namespace gatefold::checkpoint {
namespace {

using nlohmann::json;

// config.json files nest a handful of levels; each level costs memory.
constexpr int deepest_level = 64;

// Watches the parser go by, for what it would let pass.
class Watch {
 public:
  explicit Watch(const std::string& where) : where_(where) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > deepest_level) throw_input_error(where_, ": JSON nested deeper than ", deepest_level, " levels");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw_input_error(where_, ": duplicate name \"", parsed.get_ref<const std::string&>(), '"');
    }
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;  // of each object that is open
};

// Without the library's own error number in front.
std::string_view reason(const json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

}  // namespace

json parse_json_object(std::string_view text, const std::string& where) {
  json value;
  try {
    Watch watch(where);
    value = json::parse(text.begin(), text.end(), [&watch](int depth, json::parse_event_t event, json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    throw_input_error(where, ": not valid JSON: ", reason(error));
  }
  if (!value.is_object()) throw_input_error(where, ": expected a JSON object, found ", value.type_name());
  return value;
}

json read_json_object(const std::filesystem::path& path) {
  const MappedFile file(path);
  return parse_json_object({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

}  // namespace gatefold::checkpoint
