#include "checkpoint/json_text.hpp"

#include <unordered_set>
#include <utility>
#include <vector>

#include "checkpoint/input_error.hpp"
#include "checkpoint/mapped_file.hpp"

namespace gatefold::checkpoint {
namespace {

using nlohmann::json;

// config.json files nest a handful of levels; each level costs memory.
constexpr std::size_t deepest_level = 64;

// Without the library's own error number in front.
std::string_view reason(const json::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

// Builds the value while the parser goes by, and stops at what the library's own builder would let pass. (That one,
// with a callback that watches, goes through all of an object's members at the end of each: a time that is quadratic.)
class Builder final : public nlohmann::json_sax<json> {
 public:
  Builder(json& root, const std::string& where, const JsonMember* each = nullptr)
      : slot_(&root), where_(where), each_(each) {}

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& value) override { return put(std::move(value)); }  // never in a text

  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (handed_over()) return key_of_handed_over(name);
    const auto [member, is_new] = open_.back()->emplace(name, nullptr);
    if (!is_new) throw_duplicate(name);
    slot_ = &*member;
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const json::exception& error) override {
    throw_input_error(where_, ": not valid JSON: ", reason(error));
  }

 private:
  // Where the next value belongs: the root, behind the last key, or at the end of a list.
  json& put_at_slot(json&& value) {
    if (!open_.empty() && open_.back()->is_array()) return open_.back()->emplace_back(std::move(value));
    return *slot_ = std::move(value);
  }

  bool put(json&& value) {
    put_at_slot(std::move(value));
    return value_ends();
  }

  bool open(json&& value) {
    if (open_.size() > deepest_level) throw_input_error(where_, ": JSON nested deeper than ", deepest_level, " levels");
    open_.push_back(&put_at_slot(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return value_ends();
  }

  // Whether what comes now belongs to a root whose members are handed over one by one.
  bool handed_over() const { return each_ != nullptr && open_.size() == 1; }

  bool key_of_handed_over(const std::string& name) {
    const auto [stored, is_new] = names_.insert(name);
    if (!is_new) throw_duplicate(name);
    name_ = &*stored;
    slot_ = &member_;
    return true;
  }

  bool value_ends() {
    if (handed_over() && name_ != nullptr) (*each_)(*name_, member_);
    return true;
  }

  [[noreturn]] void throw_duplicate(const std::string& name) const {
    throw_input_error(where_, ": duplicate name \"", name, '"');
  }

  json* slot_;
  const std::string& where_;
  std::vector<json*> open_;  // from the root down. Only the last one grows, so that the others stay where they are

  const JsonMember* each_;
  std::unordered_set<std::string> names_;  // handed over so far
  const std::string* name_ = nullptr;      // of the member that is read
  json member_;
};

// The words that Python writes for numbers that JSON has no text for, as strings: whoever needs such a number says what
// is wrong with it, and nobody else has to mind.
std::string with_python_numbers(std::string_view text) {
  std::string result;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = 1;
    if (!in_string) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (text.substr(i).starts_with(word)) length = word.size();
      }
    } else if (text[i] == '\\' && i + 1 < text.size()) {
      length = 2;
    }
    const std::string_view piece = text.substr(i, length);
    if (piece == "\"") in_string = !in_string;
    const bool word = !in_string && length > 1;
    if (word) result += '"';
    result += piece;
    if (word) result += '"';
    i += length;
  }
  return result;
}

}  // namespace

json parse_json_object(std::string_view text, const std::string& where) {
  json value;
  Builder builder(value, where);
  json::sax_parse(text.begin(), text.end(), &builder);
  if (!value.is_object()) throw_input_error(where, ": expected a JSON object, found ", value.type_name());
  return value;
}

void parse_json_members(std::string_view text, const std::string& where, const JsonMember& each) {
  json value;
  Builder builder(value, where, &each);
  json::sax_parse(text.begin(), text.end(), &builder);
  if (!value.is_object()) throw_input_error(where, ": expected a JSON object, found ", value.type_name());
}

json read_json_object(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return parse_json_object(with_python_numbers(text), path.string());
}

}  // namespace gatefold::checkpoint
